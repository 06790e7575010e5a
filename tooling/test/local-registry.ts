import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** What a client sends to publish a package, and what others get of it. */
interface Packument {
  readonly name: string;
  readonly versions: Record<string, Manifest>;
  /** Tarballs in base64. */
  readonly _attachments: Record<string, { readonly data: string }>;
}

export interface Manifest {
  readonly name: string;
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
  readonly dist: { readonly tarball: string };
}

export interface LocalRegistry extends AsyncDisposable {
  readonly url: string;
  readonly published: readonly Manifest[];
}

/** A registry as npm's, empty, for those who send `token`. Disposing ends it. */
export async function openRegistry(token: string): Promise<LocalRegistry> {
  const packuments = new Map<string, Packument>();
  const published: Manifest[] = [];
  const server = createServer(async (request, response) => {
    if (request.method === 'PUT') {
      const isAllowed = request.headers.authorization === `Bearer ${token}`;
      if (isAllowed) keep((await json(request)) as Packument);
      response.writeHead(isAllowed ? 201 : 401).end('{}');
      return;
    }
    const found = find(request);
    response.writeHead(found === undefined ? 404 : 200).end(found ?? '{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  function keep(packument: Packument): void {
    packuments.set(packument.name, packument);
    published.push(...Object.values(packument.versions));
  }

  /** A packument as JSON, or a tarball. */
  function find({ url }: IncomingMessage): string | Buffer | undefined {
    const path = decodeURIComponent(url!);
    const packument = packuments.get(path.slice(1));
    if (packument) return JSON.stringify({ ...packument, _attachments: undefined });
    const owner = published.find(({ dist }) => new URL(dist.tarball).pathname === path);
    if (owner === undefined) return undefined;
    const [tarball] = Object.values(packuments.get(owner.name)!._attachments);
    return Buffer.from(tarball!.data, 'base64');
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    published,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
