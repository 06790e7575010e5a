// The thread of src/lifeline.ts: it ends the process, and all that it started, as soon as the other end of its pipe is
// gone. The main thread may be busy in native code for minutes and would see nothing of it.
import { Socket } from 'node:net';
import { workerData } from 'node:worker_threads';
import { killTree } from './launch/process-tree.ts';

new Socket({ fd: workerData as number })
  // What is left is closed all the same.
  .on('error', () => {})
  .on('close', end)
  .resume();

function end(): void {
  killTree(process.pid);
  // It has left the group that it was started in.
  process.kill(process.pid, 'SIGKILL');
}
