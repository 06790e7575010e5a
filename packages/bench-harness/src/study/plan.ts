import type { Problem } from './problem.ts';
import { pytorchAttention } from './problems/attention.ts';
import { torchCompile } from './problems/compiling.ts';
import { flashBenchmarking } from './problems/flash-attention.ts';
import { gradientCheckpointing, memoryProfiling } from './problems/memory.ts';
import {
  dataParallel,
  distributedCommunication,
  fullySharded,
  optimizerStateSharding,
} from './problems/parallel.ts';
import { benchmarkingMixedPrecision, mixedPrecisionAccumulation } from './problems/precision.ts';
import { benchmarkingScript, nsysProfile } from './problems/steps.ts';

/** What a study is made of, in the order of the handout. */
export const studyPlan: readonly Problem[] = [
  benchmarkingScript,
  nsysProfile,
  mixedPrecisionAccumulation,
  benchmarkingMixedPrecision,
  memoryProfiling,
  gradientCheckpointing,
  pytorchAttention,
  torchCompile,
  flashBenchmarking,
  distributedCommunication,
  dataParallel,
  optimizerStateSharding,
  fullySharded,
];
