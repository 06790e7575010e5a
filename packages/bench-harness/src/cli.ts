#!/usr/bin/env node
import { nodeProblem } from './cli/node-version.ts';
import { nameCommandAsCalled } from './cli/invocation.ts';
import { outputProblem, surviveClosedOutput, tell } from './cli/output.ts';
import { EXIT } from './errors.ts';

const problem = nodeProblem(process.version);
if (problem === null) await runCommand();
else {
  tell(`roofline: ${problem}`);
  process.exitCode = EXIT.usage;
}

async function runCommand(): Promise<void> {
  surviveClosedOutput();
  nameCommandAsCalled();
  // Loaded after the check: an old Node.js may not read all of it.
  const [{ main }, { commandEntries }] = await Promise.all([
    import('./cli/main.ts'),
    import('./commands/all.ts'),
  ]);
  process.exitCode = await main(process.argv.slice(2), commandEntries);
  // Errors of streams come after what was written.
  setImmediate(() => {
    const unwritten = outputProblem();
    if (unwritten === null) return;
    tell(`roofline: the output could not be written (${unwritten}).`);
    process.exitCode = EXIT.failure;
  });
}
