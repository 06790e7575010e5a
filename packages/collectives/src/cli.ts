#!/usr/bin/env node
import { runLaunchCommand } from './launch/launch-command.ts';

// What is written to a stream whose reader went away (`| head`) is dropped: an exception would end the launcher and leave
// the ranks behind.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE' || code === 'EIO' || code === 'ERR_STREAM_DESTROYED') return;
    console.error(`roofline-launch: the output could not be written (${message}).`);
    process.exitCode = 1;
  });

const exitCode = await runLaunchCommand(process.argv.slice(2));
process.exitCode ||= exitCode;
