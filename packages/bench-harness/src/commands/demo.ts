import { existsSync } from 'node:fs';
import { defineCommand, jsonFlag } from '../cli/command.ts';
import { parsePath } from '../cli/option-values.ts';
import { printLine, tell } from '../cli/output.ts';
import { modes } from '../benchmarks/e2e/parameters.ts';
import { deviceFlag } from '../cli/flags/device-flag.ts';
import { loadPresets } from '../model/flags.ts';

export const demoCommand = defineCommand({
  flags: {
    ...deviceFlag,
    out: {
      type: 'string',
      describe: 'Folder; default: results/demo, or the next free results/demo-N',
      coerce: parsePath('out'),
    },
    ...jsonFlag,
  },
  examples: [['roofline demo', 'measures for some seconds and says where the report lies']],
  async run({ device, out = freshFolder(), json }) {
    const { runBenchmark } = await import('../benchmarks/run-benchmark.ts');
    const { e2eBenchmark } = await import('../benchmarks/e2e/benchmark.ts');
    const { writeReport } = await import('../report/write-report.ts');
    const presets = await loadPresets();
    const { exitCode, records, isKept } = await runBenchmark(e2eBenchmark, {
      parameters: ({ type }) => demoParameters(type === 'cuda' ? 'small' : 'tiny', presets),
      device,
      dtypes: ['float32'],
      out,
      forceNew: false,
      timeoutMs: null,
      outOfMemory: 'report',
      json,
    });
    if (records.length === 0 || !isKept) return exitCode;
    const { html } = await writeReport(e2eBenchmark.toReport(records), out);
    (json ? tell : printLine)(`\nReport: ${html}`);
    return exitCode;
  },
});

function demoParameters(size: string, presets: Awaited<ReturnType<typeof loadPresets>>) {
  return {
    model: [{ size, shape: presets[size]! }],
    ...{ context: [64, 128], batch: [4], mode: modes, dtype: ['float32'] },
    ...{ warmup: 3, steps: 10, seed: 0, peer: null },
  };
}

/** Every run of the demo measures afresh. */
function freshFolder(): string {
  for (let number = 1; ; number++) {
    const folder = number === 1 ? 'results/demo' : `results/demo-${number}`;
    if (!existsSync(folder)) return folder;
  }
}
