import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { execa } from 'execa';
import { makeWritable } from '../../records/results-folder.ts';
import { writeBundle } from './write-bundle.ts';

const ARCHIVE_ENDING = '.tar.xz';

/** Writes a bundle as a folder, or as one archive when `out` ends in .tar.xz. Returns its size in bytes. */
export async function packBundle(out: string): Promise<number> {
  makeWritable(dirname(resolve(out)));
  if (!out.endsWith(ARCHIVE_ENDING)) {
    writeBundle(out);
    return folderSize(out);
  }
  const workspace = mkdtempSync(join(tmpdir(), 'roofline-bundle-'));
  try {
    const name = basename(out, ARCHIVE_ENDING);
    writeBundle(join(workspace, name));
    await execa('tar', ['-C', workspace, '-cJf', resolve(out), name], { env: { XZ_OPT: '-9 -T2' } });
    return statSync(out).size;
  } finally {
    rmSync(workspace, { recursive: true });
  }
}

/** Bytes of all files below; links are not followed. */
function folderSize(folder: string): number {
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sum + folderSize(path);
    return entry.isFile() ? sum + statSync(path).size : sum;
  }, 0);
}
