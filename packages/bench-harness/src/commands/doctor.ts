import { dtypes, type Ceilings } from '../measuring/ceilings.ts';
import { defineCommand, jsonFlag } from '../cli/command.ts';
import { printJson, printLine } from '../cli/output.ts';
import { printSentence } from '../cli/print-sentence.ts';
import { printTable } from '../cli/print-table.ts';
import { ProgressDisplay } from '../cli/progress.ts';
import { EXIT } from '../errors.ts';
import { deviceFlag } from '../cli/flags/device-flag.ts';
import type { DiagnosisEntry } from '../device/diagnosis.ts';
import type { DeviceDescription } from '../records/environment.ts';

export const doctorCommand = defineCommand({
  flags: {
    ...deviceFlag,
    ceilings: { type: 'boolean', default: false, describe: "Measure the device's ceilings again" },
    ...jsonFlag,
  },
  examples: [
    ['roofline doctor', 'libraries, devices, PyTorch, JAX'],
    ['roofline doctor --device cuda:0 --ceilings', 'measure the roof of the first GPU again'],
  ],
  async run({ device: spec, ceilings: measure, json }) {
    const { lookAround } = await import('../device/look-around.ts');
    const { diagnosisTable, remedyLines, verdict } = await import('../device/diagnosis.ts');
    using progress = new ProgressDisplay();
    progress.status('Looking around');
    const { device, problem, diagnosis: found, torch, jax } = await lookAround(spec);
    const { ceilings, failure } =
      measure && device ? await measureCeilings(spec, device, progress) : { ceilings: null, failure: null };
    progress.clear();
    const diagnosis = [...found, ...(failure ? [failure] : [])];
    const entries = [...diagnosis, torch, jax];
    const exitCode = device && !failure ? EXIT.ok : EXIT.failure;
    if (json) {
      printJson({ device, problem, diagnosis, torch, jax, ceilings, verdict: verdict(entries) });
      return exitCode;
    }

    const { ceilingFacts, propertyFacts } = await import('../report/environment-facts.ts');
    printTable(diagnosisTable(entries));
    const remedies = remedyLines(entries);
    if (remedies.length > 0) printLine('\nTo get what is missing');
    for (const remedy of remedies) printSentence(remedy);
    printLine();
    printSentence(device ? `Device ${device.label}: ${device.name}` : problem!);
    const facts = [...propertyFacts(device?.properties ?? {}), ...(ceilings ? ceilingFacts(ceilings) : [])];
    for (const [name, value] of facts) printLine(`  ${name}: ${value}`);
    printLine();
    printSentence(verdict(entries));
    return exitCode;
  },
});

interface MeasuredCeilings {
  readonly ceilings: Ceilings | null;
  readonly failure: DiagnosisEntry | null;
}

/** The roof of a device, or the entry that says why it could not be measured. */
async function measureCeilings(
  spec: string,
  { type, label }: DeviceDescription,
  progress: ProgressDisplay,
): Promise<MeasuredCeilings> {
  const { prepareDevice } = await import('../device/prepare-device.ts');
  const { unusable } = await import('../device/look-around.ts');
  try {
    const prepared = await prepareDevice(spec, type === 'cuda' ? dtypes : ['float32'], {
      freshCeilings: true,
      onStatus: (...status) => progress.status(...status),
    });
    return { ceilings: prepared?.ceilings ?? null, failure: null };
  } catch (error) {
    return { ceilings: null, failure: unusable(`ceilings of ${label}`, error) };
  }
}
