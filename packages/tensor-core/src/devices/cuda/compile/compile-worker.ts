// The program of a thread of compileKernels: kernels in, what became of each out.
import { parentPort, workerData } from 'node:worker_threads';
import { KernelCompileError } from '../../../errors.ts';
import type { CompileJob, CompileOutcome } from './compile-kernels.ts';
import { KernelBuilder } from './compile.ts';

const builder = new KernelBuilder(workerData as string);

function compile({ source, defines }: CompileJob): CompileOutcome {
  try {
    builder.buildFile(new URL(source), defines);
    return { failure: null };
  } catch (error) {
    if (!(error instanceof KernelCompileError)) throw error;
    return { failure: { log: error.log, source: error.source } };
  }
}

parentPort!.on('message', (job: CompileJob) => parentPort!.postMessage(compile(job), []));
