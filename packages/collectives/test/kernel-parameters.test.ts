// It is alone in a process: it loads the package anew.
import { testKernelParameters } from '../../../tooling/kernel-parameters.ts';

await testKernelParameters(() => import('../src/index.ts'), 0);
