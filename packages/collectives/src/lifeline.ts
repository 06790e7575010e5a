// Preloaded into a process that is to end with the one that has started it; see launch/spawn-with-lifeline.ts.
import { Worker } from 'node:worker_threads';
import { lifelineVariable } from './launch/lifeline-variable.ts';
import { packageProgram, threadFlags } from './package-program.ts';

const descriptor = process.env[lifelineVariable];
if (descriptor !== undefined) {
  // What this process forks preloads this file too, and has no lifeline of its own.
  delete process.env[lifelineVariable];
  new Worker(packageProgram('lifeline-thread'), {
    name: 'roofline-lifeline',
    workerData: Number(descriptor),
    execArgv: threadFlags(),
  }).unref();
}
