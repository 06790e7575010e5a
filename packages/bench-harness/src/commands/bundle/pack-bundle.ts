import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { formatBytes, formatPercent } from '@roofline/reports';
import { UsageError } from '../../errors.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { makeWritable } from '../../records/results-folder.ts';
import { writeBundle } from './write-bundle.ts';

/** What writes an archive of each ending, on all cores. */
const compressors: Readonly<Record<string, readonly [command: string, ...args: string[]]>> = {
  '.tar.xz': ['xz', '-6', '-T0'],
  '.tar.zst': ['zstd', '-12', '-T0', '--quiet'],
};

/** Endings that look like an archive's; a folder of such a name is not what is meant. */
const ARCHIVE = /\.(tar|t?gz|t?bz2|t?xz|zst|zip|7z)$/i;

/**
 * Writes a bundle as a folder, or as one archive when `out` ends in .tar.xz or .tar.zst. Returns its size in bytes.
 * Throws UsageError for other archives, where something of another kind is there, and without the program that
 * compresses it.
 */
export async function packBundle(out: string, onStatus: (text: string) => void = () => {}): Promise<number> {
  const [ending, compressor] = Object.entries(compressors).find(([each]) => out.endsWith(each)) ?? [];
  if (ending === undefined && ARCHIVE.test(out)) {
    throw new UsageError(
      `--out ${out} is no archive that is written: it may end in ${Object.keys(compressors).join(' or ')}, or name a folder.`,
    );
  }
  const isFolder = statSync(out, { throwIfNoEntry: false })?.isDirectory();
  if (isFolder === (ending !== undefined)) {
    throw new UsageError(`${out} is ${isFolder ? 'a' : 'no'} folder. Remove it, or name another by --out.`);
  }
  makeWritable(dirname(resolve(out)));
  onStatus('Copying Node.js, packages and tests');
  if (ending === undefined || compressor === undefined) {
    writeBundle(out);
    return folderSize(out);
  }
  using workspace = temporaryFolder('bundle');
  const name = basename(out, ending);
  writeBundle(join(workspace.path, name));
  const total = folderSize(join(workspace.path, name));
  await compress(workspace.path, name, compressor, resolve(out), (byteLength) =>
    // tar's own headers come on top of the files.
    onStatus(`Compressing: ${formatPercent(Math.min(1, byteLength / total))} of ${formatBytes(total)}`),
  );
  return statSync(out).size;
}

/** Pipes `tar` through the compressor into `path`, and returns how many bytes it has read. */
async function compress(
  workspace: string,
  name: string,
  [command, ...args]: readonly [command: string, ...args: string[]],
  path: string,
  onProgress: (byteLength: number) => void,
): Promise<void> {
  const tar = spawn('tar', ['-C', workspace, '-cf', '-', name], { stdio: ['ignore', 'pipe', 'inherit'] });
  const compressor = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  let byteLength = 0;
  tar.stdout.on('data', (chunk: Buffer) => onProgress((byteLength += chunk.length)));
  try {
    await Promise.all([
      endOf(tar, 'tar'),
      endOf(compressor, command),
      pipeline(tar.stdout, compressor.stdin),
      pipeline(compressor.stdout, createWriteStream(path)),
    ]);
  } catch (error) {
    for (const child of [tar, compressor]) child.kill();
    rmSync(path, { force: true });
    throw error;
  }
}

async function endOf(child: ChildProcess, command: string): Promise<void> {
  const [code] = (await once(child, 'close').catch((cause: Error) => {
    throw new UsageError(`${command} cannot be started (${cause.message}). Install it, or bundle a folder.`, {
      cause,
    });
  })) as [number | null];
  if (code !== 0) throw new Error(`${command} ended with ${code}.`);
}

/** Bytes of all files below; links are not followed. */
function folderSize(folder: string): number {
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sum + folderSize(path);
    return entry.isFile() ? sum + statSync(path).size : sum;
  }, 0);
}
