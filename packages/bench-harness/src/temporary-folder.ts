import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** An empty folder, which goes with all that is in it when this is disposed of. */
export function temporaryFolder(purpose: string): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), `roofline-${purpose}-`));
  return {
    path,
    [Symbol.dispose]() {
      rmSync(path, { recursive: true, force: true });
    },
  };
}
