// The program of a cell's process: a job in, progress and its result out, job after job. See runner/cell-protocol.ts.
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { killTree } from '@roofline/collectives/spawn-with-lifeline';
import type { CellError } from './records/record.ts';
import { sendEvent, type CellJob } from './runner/cell-protocol.ts';
import { loadTask } from './benchmarks/tasks.ts';
import { leavesDeviceEmpty } from './runner/empty-device.ts';

volunteerForMemoryKill();
process.on('uncaughtException', fail);
const input = createInterface({ input: process.stdin });
input.on('line', (line) => void run(JSON.parse(line) as CellJob).catch(fail));
// The runner has no other job, or is gone.
input.once('close', endWithGroup);

async function run(job: CellJob): Promise<void> {
  const task = await loadTask(job.task);
  const result = await task.measure(job.parameters, {
    settings: job.settings,
    deviceLabel: job.deviceLabel,
    progress: (done, total, message) => sendEvent({ type: 'progress', done, total, message }),
  });
  const goesOn = job.goesOn === true && (await leavesDeviceEmpty(job.deviceLabel));
  sendEvent({ type: 'result', result: result as Record<string, never>, goesOn });
  if (!goesOn) process.exit(0);
}

function fail(thrown: unknown): never {
  try {
    sendEvent({ type: 'error', error: describeError(thrown) });
  } catch {
    // The runner is gone.
    endWithGroup();
  }
  process.exit(1);
}

/** Ends this process and all that the cells started: a runner that is gone cannot do it once this one has ended. */
function endWithGroup(): never {
  process.on('exit', () => killTree(process.pid));
  process.exit();
}

function describeError(thrown: unknown): CellError {
  if (!(thrown instanceof Error)) return { name: 'Error', message: cut(String(thrown)) };
  const code = (thrown as Error & { code?: unknown }).code;
  return {
    name: thrown.name,
    ...(typeof code === 'string' ? { code } : {}),
    message: cut(messageOf(thrown)),
    ...(thrown.stack === undefined ? {} : { stack: cut(thrown.stack) }),
  };
}

/** A record is a line that people open in editors. */
const LONGEST_MESSAGE = 20_000;

function cut(text: string): string {
  if (text.length <= LONGEST_MESSAGE) return text;
  return `${text.slice(0, LONGEST_MESSAGE)}… (${text.length} characters in all)`;
}

function messageOf({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}\nCaused by: ${messageOf(cause)}` : message;
}

/** Should the machine's memory run out, the kernel kills the cell, not the sweep or another process. */
function volunteerForMemoryKill(): void {
  if (process.platform !== 'linux') return;
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {
    // Some sandboxes mount /proc read-only; the kernel then chooses by size, which is mostly the cell as well.
  }
}
