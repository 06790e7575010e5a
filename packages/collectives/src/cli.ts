#!/usr/bin/env node
import { runLaunchCommand } from './launch/launch-command.ts';

process.exitCode = await runLaunchCommand(process.argv.slice(2));
