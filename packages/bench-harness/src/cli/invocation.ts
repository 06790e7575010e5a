import { existsSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { packageDirectory } from '../paths.ts';

/** Texts write `roofline report`; this is what a shell takes for `roofline` here. */
let spoken = 'roofline';

/** From now on texts name the command as it is called here. */
export function nameCommandAsCalled(): void {
  spoken = invocation();
}

/** What stands for `roofline` in a shell in this process's folder. */
export function spokenCommand(): string {
  return spoken;
}

/** A line for a shell, of one command or several. */
export function lineAsCalled(line: string): string {
  return line.replaceAll(/\broofline (?=[a-z])/g, `${spoken} `);
}

/** A text whose commands between backticks work as they stand. */
export function asCalled(text: string): string {
  return text.replaceAll(/`roofline(?= [a-z-])/g, `\`${spoken}`);
}

interface Surroundings {
  /** The folder of this package. */
  readonly folder: string;
  readonly currentFolder: string;
  readonly exists: (path: string) => boolean;
}

/** A dependency's program comes by npx, a checkout's by its script, that of a bundle lies at its top. */
export function invocation(surroundings: Surroundings = processSurroundings()): string {
  const { folder, currentFolder, exists } = surroundings;
  if (folder.split(sep).includes('node_modules')) return 'npx roofline';
  const fromHere = (path: string) => {
    const way = relative(currentFolder, path);
    return way.startsWith('..') ? way : `.${sep}${way}`;
  };
  const root = join(folder, '..', '..');
  const launcher = join(root, 'roofline');
  if (exists(launcher)) return fromHere(launcher);
  const built = join(folder, 'dist', 'cli.js');
  if (!exists(built)) return `node --conditions=roofline-source ${fromHere(join(folder, 'src', 'cli.ts'))}`;
  return relative(root, currentFolder) === '' ? 'npm run -s roofline --' : `node ${fromHere(built)}`;
}

function processSurroundings(): Surroundings {
  return { folder: packageDirectory, currentFolder: process.cwd(), exists: existsSync };
}
