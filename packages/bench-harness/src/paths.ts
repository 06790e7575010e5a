// This file stays at the top of src/: after bundling its code is at the top of dist/, and relative URLs stay right.
import { fileURLToPath } from 'node:url';

const runsFromSources = import.meta.url.endsWith('.ts');

const program = (name: string) =>
  fileURLToPath(new URL(`./${name}.${runsFromSources ? 'ts' : 'js'}`, import.meta.url));

/** The program that a cell's process runs, and the flags Node needs for it. */
export const cellProgram = {
  path: program('cell'),
  nodeFlags: [
    '--disable-warning=ExperimentalWarning',
    // Stacks of what is built name the lines of the sources.
    runsFromSources ? '--conditions=roofline-source' : '--enable-source-maps',
  ],
} as const;

/** The program of a rank of `roofline ddp`. */
export const ddpRankProgram = program('ddp-rank');

/** The program of a rank of `roofline train`. */
export const trainRankProgram = program('train-rank');

/** The program of a rank of `roofline allreduce`. */
export const collectiveRankProgram = program('collective-rank');

/** The program of a thread that encodes texts. */
export const encodeThreadProgram = program('encode-thread');

/** This package's folder. */
export const packageDirectory = fileURLToPath(new URL('..', import.meta.url));

/** The Python programs that run and check the same work in PyTorch. */
export const pythonDirectory = fileURLToPath(new URL('../python/', import.meta.url));
