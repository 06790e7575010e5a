import type { Command } from '../cli/command.ts';
import { agreeCommand } from './agree.ts';
import { bundleCommand } from './bundle.ts';
import { compareCommand } from './compare.ts';
import { demoCommand } from './demo.ts';
import { doctorCommand } from './doctor.ts';
import { e2eCommand } from '../benchmarks/e2e/command.ts';
import { memoryCommand } from '../benchmarks/memory/command.ts';
import { modelCommand } from './model.ts';
import { overheadCommand } from '../benchmarks/overhead/command.ts';
import { precisionCommand } from '../benchmarks/precision/command.ts';
import { profileCommand } from '../benchmarks/profile/command.ts';
import { reportCommand } from './report.ts';

/** In the order of `roofline --help`. */
export const commands = [
  e2eCommand,
  overheadCommand,
  memoryCommand,
  profileCommand,
  precisionCommand,
  reportCommand,
  compareCommand,
  modelCommand,
  doctorCommand,
  agreeCommand,
  demoCommand,
  bundleCommand,
] as unknown as readonly Command[];
