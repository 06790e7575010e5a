import { stepParameters } from '../benchmarks/e2e/parameters.ts';
import { defineCommand, jsonFlag } from '../cli/command.ts';
import { settingFlagsOf, settingsBy } from '../cli/flags/parameter-flags.ts';
import { printJson, printLine } from '../cli/output.ts';
import { printTable } from '../cli/print-table.ts';
import { EXIT, UsageError } from '../errors.ts';
import type { ValuesOf } from '../parameters/sweep.ts';
import { chooseModels, loadPresets, modelFlags, sizeFlag, type ModelArguments } from '../model/flags.ts';

const { context, batch } = stepParameters;
/** Of one step. */
const sizes = { context, batch };

export const modelCommand = defineCommand({
  flags: {
    ...modelFlags,
    size: { ...sizeFlag('all, in a table'), describe: 'One of the presets' },
    ...settingFlagsOf(sizes),
    ...jsonFlag,
  },
  examples: [
    ['roofline model', 'the presets'],
    ['roofline model --size small', 'parameters by module, FLOPs of a step, bytes'],
    ['roofline model --size 2.7b --context 512 --json', 'the same for other programs'],
    ['roofline model --size small --layers 24', 'a preset with a change'],
    ['roofline model --model Qwen2.5-0.5B --context 4096', 'the config.json of a folder'],
  ],
  async run(args) {
    const { describeModel, modelTables, presetTable } = await import('./describe-model.ts');
    const step = settingsBy(sizes, args) as ValuesOf<typeof sizes>;
    if (!namesModel(args)) {
      const presets = Object.entries(await loadPresets()).map(([size, shape]) => ({ size, shape }));
      const descriptions = presets.map((model) => describeModel(model, step));
      if (args.json) printJson({ presets: descriptions });
      else printTable(presetTable(descriptions));
      return EXIT.ok;
    }
    const models = await chooseModels(args, 'small');
    if (models.length > 1) throw new UsageError('`roofline model` describes one size at a time.');
    const description = describeModel(models[0]!, step);
    if (args.json) {
      printJson(description);
      return EXIT.ok;
    }
    for (const table of modelTables(description)) {
      printTable(table);
      printLine();
    }
    return EXIT.ok;
  },
});

function namesModel(args: ModelArguments): boolean {
  return Object.keys(modelFlags).some((flag) => args[flag as keyof ModelArguments] !== undefined);
}
