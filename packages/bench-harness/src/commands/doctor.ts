import { dtypes } from '../measuring/ceilings.ts';
import { defineCommand, jsonFlag } from '../cli/command.ts';
import { printJson, printLine } from '../cli/output.ts';
import { printTable } from '../cli/print-table.ts';
import { ProgressDisplay } from '../cli/progress.ts';
import { EXIT } from '../errors.ts';
import { deviceFlag } from '../cli/flags/device-flag.ts';

export const doctorCommand = defineCommand({
  flags: {
    ...deviceFlag,
    ceilings: { type: 'boolean', default: false, describe: "Measure the device's ceilings anew" },
    ...jsonFlag,
  },
  examples: [
    ['roofline doctor', 'libraries, devices, PyTorch'],
    ['roofline doctor --device cuda:0 --ceilings', 'measure the roof of the first GPU again'],
  ],
  async run({ device: spec, ceilings: measure, json }) {
    const { prepareDevice, probeDevice } = await import('../device/prepare-device.ts');
    const { diagnosisTable, remedies } = await import('../device/diagnosis.ts');
    const progress = new ProgressDisplay();
    progress.status('Looking around');
    const [probe, gloo, torch] = await Promise.all([probeDevice(spec), findGloo(), findTorch()]);
    const { device, problem } = probe!;
    const diagnosis = [...probe!.diagnosis, gloo];
    const prepared =
      measure && device
        ? await prepareDevice(spec, device.type === 'cuda' ? dtypes : ['float32'], {
            freshCeilings: true,
            onStatus: (text) => progress.status(text),
          })
        : null;
    progress.clear();
    const ceilings = prepared?.ceilings ?? null;
    if (json) {
      printJson({ device, problem, diagnosis, torch, ceilings });
      return device ? EXIT.ok : EXIT.failure;
    }

    const { ceilingFacts } = await import('../report/environment-facts.ts');
    printTable(diagnosisTable([...diagnosis, torch]));
    for (const line of remedies([...diagnosis, torch])) printLine(`- ${line}`);
    printLine(device ? `\nDevice ${device.label}: ${device.name}` : `\n${problem}`);
    for (const [name, value] of Object.entries(device?.properties ?? {})) printLine(`  ${name}: ${value}`);
    if (ceilings) for (const [name, value] of ceilingFacts(ceilings)) printLine(`  ${name}: ${value}`);
    return device ? EXIT.ok : EXIT.failure;
  },
});

/** Gloo connects processes that use CPUs; it is no need either. */
async function findGloo() {
  const { diagnoseGloo } = await import('@roofline/collectives');
  return diagnoseGloo();
}

/** PyTorch is a peer to measure against, not a need. */
async function findTorch() {
  const { findTorchPython } = await import('../peer/find-python.ts');
  const component = 'Python with PyTorch';
  try {
    const { executable, torchVersion } = await findTorchPython();
    return { component, status: 'found', version: torchVersion, detail: executable } as const;
  } catch (error) {
    return { component, status: 'missing', detail: (error as Error).message } as const;
  }
}
