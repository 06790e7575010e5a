import { defineCommand } from '../cli/command.ts';
import { tell } from '../cli/output.ts';
import type { E2eParameters } from '../e2e/parameters.ts';
import { e2eFlags, type E2eArguments } from './e2e-flags.ts';
import { chooseModels } from './model-flags.ts';

export const e2eCommand = defineCommand({
  name: 'e2e',
  summary: 'Time forward, backward and optimizer of a Transformer language model; lists sweep',
  flags: e2eFlags,
  examples: [
    ['roofline e2e --size small', 'the three modes of one size'],
    ['roofline e2e --size small,medium --context 128,256 --out results/sweep', 'a sweep; again to resume it'],
    ['roofline e2e --size small --peer torch', 'PyTorch beside it, in turn'],
    ['roofline e2e --d-model 512 --d-ff 2048 --layers 4 --heads 8', 'a size of your own'],
    ['roofline e2e --size small --json | jq .rows', 'for other programs'],
  ],
  async run(args) {
    const { runBenchmark } = await import('../cli/run-benchmark.ts');
    const { e2eBenchmark } = await import('../e2e/benchmark.ts');
    const parameters = await e2eParametersFrom(args);
    const out = args.out ?? `results/e2e-${timestamp()}`;
    const { exitCode } = await runBenchmark(e2eBenchmark, {
      parameters: () => parameters,
      device: args.device,
      dtypes: args.dtype,
      out,
      forceNew: args['force-new'],
      timeoutMs: args.timeout === undefined ? null : args.timeout * 1000,
      outOfMemory: args.oom,
      json: args.json,
    });
    tell(`Records are in ${out}; \`roofline report ${out}\` makes tables, plots and a page of them.`);
    return exitCode;
  },
});

async function e2eParametersFrom(args: E2eArguments): Promise<E2eParameters> {
  return {
    models: await chooseModels(args, 'small'),
    contexts: args.context,
    batches: args.batch,
    modes: args.mode,
    dtypes: args.dtype,
    warmup: args.warmup,
    steps: args.steps,
    seed: args.seed,
    peer: args.peer === undefined ? null : await findPeer(),
  };
}

/** Finds the interpreter once; the cells, which inherit the environment, then take the same one. */
async function findPeer(): Promise<E2eParameters['peer']> {
  const { findTorchPython } = await import('../peer/find-python.ts');
  const { executable, torchVersion } = await findTorchPython();
  process.env['ROOFLINE_PYTHON'] = executable;
  return { name: 'torch', version: torchVersion };
}

/** `20260102-030405`, in local time. */
function timestamp(): string {
  const now = new Date();
  const parts = [
    now.getFullYear(),
    now.getMonth() + 1,
    now.getDate(),
    now.getHours(),
    now.getMinutes(),
    now.getSeconds(),
  ];
  const [date, time] = [parts.slice(0, 3), parts.slice(3)];
  return [date, time]
    .map((numbers) => numbers.map((each) => String(each).padStart(2, '0')).join(''))
    .join('-');
}
