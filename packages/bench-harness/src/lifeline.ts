// The program of a thread in every cell's process: it ends the process, and all that it started, as soon as the runner
// is gone. The main thread may be busy in native code for minutes and would see nothing of it.
import { Socket } from 'node:net';
import { workerData } from 'node:worker_threads';
import { killTree } from './runner/process-tree.ts';

new Socket({ fd: workerData as number }).on('close', () => killTree(process.pid)).resume();
