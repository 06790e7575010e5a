import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A packed package: what `pnpm pack` wrote, and the manifest inside. */
export interface PackedPackage {
  readonly manifest: { readonly name: string; readonly version: string };
  readonly tarball: string;
}

/** Serves packages as the npm registry would. Disposing ends it. */
export async function serveRegistry(
  packages: readonly PackedPackage[],
): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url!).slice(1);
    const found = packages.find(({ manifest }) => path === manifest.name || path === `${manifest.name}.tgz`);
    if (found === undefined) response.writeHead(404).end('{}');
    else if (path.endsWith('.tgz')) response.end(readFileSync(found.tarball));
    else response.setHeader('content-type', 'application/json').end(JSON.stringify(packument(found, url)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    url,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** All that a registry tells of a package, here of one version. */
function packument({ manifest, tarball }: PackedPackage, url: string): object {
  const { name, version } = manifest;
  const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  const dist = { tarball: `${url}${name}.tgz`, integrity };
  return { name, 'dist-tags': { latest: version }, versions: { [version]: { ...manifest, dist } } };
}
