#!/usr/bin/env node
import { runLaunchCommand } from './launch/launch-command.ts';

// What is written to a stream whose reader went away (`| head`) is dropped: an exception would end the launcher and leave
// the ranks behind.
let unwritten: string | null = null;
for (const stream of [process.stdout, process.stderr])
  stream.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code !== 'EPIPE' && code !== 'EIO' && code !== 'ERR_STREAM_DESTROYED') unwritten ??= message;
  });

process.exitCode = await runLaunchCommand(process.argv.slice(2));
// Errors of streams come after what was written.
setImmediate(() => {
  if (unwritten === null) return;
  console.error(`roofline-launch: the output could not be written (${unwritten}).`);
  process.exitCode ||= 1;
});
