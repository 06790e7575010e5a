#!/usr/bin/env node
import { main } from './cli/main.ts';
import { tolerateClosedPipes } from './cli/output.ts';

tolerateClosedPipes();
process.exitCode = await main(process.argv.slice(2));
