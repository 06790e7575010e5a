import { formatBytes } from '@roofline/reports';
import { defineCommand, jsonFlag } from '../cli/command.ts';
import { parsePath } from '../cli/option-values.ts';
import { printJson, printLine } from '../cli/output.ts';
import { ProgressDisplay } from '../cli/progress.ts';
import { EXIT } from '../errors.ts';

export const bundleCommand = defineCommand({
  flags: {
    out: {
      type: 'string',
      demandOption: true,
      describe: 'A new folder, or a file that ends in .tar.xz (smallest) or .tar.zst (fastest)',
      coerce: parsePath('out'),
    },
    ...jsonFlag,
  },
  examples: [
    ['roofline bundle --out roofline-bundle', 'a folder'],
    ['roofline bundle --out roofline-bundle.tar.xz', 'one file; on the host: tar xf, then ./roofline doctor'],
  ],
  async run({ out, json }) {
    const { packBundle } = await import('./bundle/pack-bundle.ts');
    using progress = new ProgressDisplay();
    const byteLength = await packBundle(out, (text) => progress.status(text));
    progress.clear();
    if (json) printJson({ path: out, byteLength });
    else printLine(`${out}: ${formatBytes(byteLength)}`);
    return EXIT.ok;
  },
});
