import type { Command } from '../cli/command.ts';
import { agreeCommand } from './agree.ts';
import { bundleCommand } from './bundle.ts';
import { compareCommand } from './compare.ts';
import { demoCommand } from './demo.ts';
import { doctorCommand } from './doctor.ts';
import { e2eCommand } from './e2e.ts';
import { memoryCommand } from './memory.ts';
import { modelCommand } from './model.ts';
import { overheadCommand } from './overhead.ts';
import { precisionCommand } from './precision.ts';
import { profileCommand } from './profile.ts';
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
