import type { Command } from '../cli/command.ts';
import { agreeCommand } from './agree.ts';
import { bundleCommand } from './bundle.ts';
import { compareCommand } from './compare.ts';
import { demoCommand } from './demo.ts';
import { doctorCommand } from './doctor.ts';
import { e2eCommand } from './e2e.ts';
import { modelCommand } from './model.ts';
import { reportCommand } from './report.ts';

/** In the order of `roofline --help`. */
export const commands = [
  e2eCommand,
  reportCommand,
  compareCommand,
  modelCommand,
  doctorCommand,
  agreeCommand,
  demoCommand,
  bundleCommand,
] as unknown as readonly Command[];
