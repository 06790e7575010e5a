import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os';
import { z } from 'zod';
import { checkArgument } from '../check-argument.ts';
import { packageVersions } from './package-versions.ts';
import { gitState, gitStateSchema } from './git-state.ts';

export const deviceDescription = z.object({
  /** As users write it: `cpu`, `cuda:0`. */
  label: z.string(),
  type: z.enum(['cpu', 'cuda']),
  /** The marketing name. */
  name: z.string(),
  /** Driver, compute capability, clocks, threads... as the device reports them. */
  properties: z.record(z.string(), z.union([z.string(), z.number()])),
});
/** The device that a record was measured on. */
export type DeviceDescription = z.infer<typeof deviceDescription>;

/** Everything about the machine that a reader of a record needs; the host's name is left out on purpose. */
export const environmentSchema = z.object({
  device: deviceDescription,
  system: z.object({
    platform: z.string(),
    release: z.string(),
    architecture: z.string(),
    cpuModel: z.string(),
    cpuCores: z.number(),
    memoryBytes: z.number(),
  }),
  node: z.string(),
  packages: z.record(z.string(), z.string()),
  /** Environment variables that change how the device computes. */
  variables: z.record(z.string(), z.string()).default({}),
  git: gitStateSchema.nullable(),
});
/** What a record says of the machine: device, driver, libraries, versions, commit. */
export type Environment = z.infer<typeof environmentSchema>;

/** An environment in memory: what older files lack has been filled in. */
export const completeEnvironment = environmentSchema.extend({
  variables: environmentSchema.shape.variables.unwrap(),
});

const recordedVariables = ['ROOFLINE_FLOAT32_MATMUL', 'ROOFLINE_CPU_THREADS'];

/** The environment of measurements on `device`, as seen from this process. */
export function describeEnvironment(device: DeviceDescription): Environment {
  checkArgument('describeEnvironment', 'device', device, deviceDescription);
  return {
    device,
    system: {
      platform: platform(),
      release: release(),
      architecture: arch(),
      cpuModel: cpuModel(),
      cpuCores: availableParallelism(),
      memoryBytes: totalmem(),
    },
    node: process.version,
    packages: packageVersions(),
    variables: Object.fromEntries(
      recordedVariables.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
    ),
    git: gitState(),
  };
}

/**
 * What must be equal for times to be comparable, in one line: for a GPU its name, for a CPU the model and the
 * number of threads that compute.
 */
export function deviceIdentity({ device, system }: Environment): string {
  if (device.type === 'cuda') return device.name;
  return `${system.cpuModel}, ${device.properties['threads'] ?? system.cpuCores} threads`;
}

function cpuModel(): string {
  return cpus()[0]?.model.trim() ?? 'unknown CPU';
}
