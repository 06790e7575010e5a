import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** What a client sends to publish a version, and what others get of all versions of a package. */
interface Packument {
  readonly name: string;
  readonly 'dist-tags': Record<string, string>;
  readonly versions: Record<string, Manifest>;
  /** Tarballs in base64, by name. */
  readonly _attachments: Record<string, { readonly data: string }>;
}

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
  readonly dist: { readonly tarball: string };
}

export interface LocalRegistry extends AsyncDisposable {
  readonly url: string;
  /** Every version, in the order in which they came. */
  readonly published: readonly Manifest[];
  /** Has the packages of these tarballs, as if they had been published before. */
  takeTarballs(paths: readonly string[]): void;
  /** The environment variables by which a job of GitHub's proves to be the workflow that this registry trusts. */
  readonly workflow: NodeJS.ProcessEnv;
}

const identityRequest = '/identity-of-the-workflow';
const exchange = '/-/npm/v1/oidc/token/exchange/package/';

/**
 * A registry as npm's, empty, that takes a package from its trusted publisher alone: the client asks GitHub, whose part
 * it plays as well, for the identity of the workflow, and gets a token of that package for it. Disposing ends it.
 */
export async function openRegistry(): Promise<LocalRegistry> {
  const packuments = new Map<string, Packument>();
  const published: Manifest[] = [];
  const server = createServer(async (request, response) => {
    const [status, body] = await answer(request);
    response.writeHead(status, { 'cache-control': 'no-store' }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

  async function answer(request: IncomingMessage): Promise<[number, string | Buffer]> {
    const path = decodeURIComponent(new URL(request.url!, url).pathname);
    const { authorization } = request.headers;
    if (path === identityRequest) {
      return authorization === 'Bearer a-job' ? [200, '{"value":"the-workflow"}'] : [401, '{}'];
    }
    if (path.startsWith(exchange)) {
      const token = `token-of-${path.slice(exchange.length)}`;
      return authorization === 'Bearer the-workflow' ? [201, JSON.stringify({ token })] : [401, '{}'];
    }
    if (request.method === 'PUT') {
      if (authorization !== `Bearer token-of-${path.slice(1)}`) return [401, '{}'];
      keep((await json(request)) as Packument);
      return [201, '{}'];
    }
    const found = find(path);
    return found === undefined ? [404, '{}'] : [200, found];
  }

  function keep(sent: Packument): void {
    const known = packuments.get(sent.name);
    packuments.set(sent.name, {
      name: sent.name,
      'dist-tags': { ...known?.['dist-tags'], ...sent['dist-tags'] },
      versions: { ...known?.versions, ...sent.versions },
      _attachments: { ...known?._attachments, ...sent._attachments },
    });
    published.push(...Object.values(sent.versions));
  }

  /** A packument as JSON, or a tarball. */
  function find(path: string): string | Buffer | undefined {
    const packument = packuments.get(path.slice(1));
    if (packument) return JSON.stringify({ ...packument, _attachments: undefined });
    const owner = published.find(({ dist }) => decodeURIComponent(new URL(dist.tarball).pathname) === path);
    if (owner === undefined) return undefined;
    const tarballs = Object.entries(packuments.get(owner.name)!._attachments);
    const [, tarball] = tarballs.find(([name]) => name.endsWith(`-${owner.version}.tgz`))!;
    return Buffer.from(tarball.data, 'base64');
  }

  return {
    url,
    published,
    takeTarballs: (paths) => paths.forEach((path) => keep(packumentOf(path, url))),
    workflow: {
      GITHUB_ACTIONS: 'true',
      ACTIONS_ID_TOKEN_REQUEST_URL: `${url.slice(0, -1)}${identityRequest}?api-version=2`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'a-job',
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** What a client would send of a tarball. */
function packumentOf(path: string, url: string): Packument {
  const text = execFileSync('tar', ['-xOf', path, 'package/package.json'], { encoding: 'utf8' });
  const manifest = JSON.parse(text) as Manifest;
  const { name, version } = manifest;
  const tarball = `${name}-${version}.tgz`;
  return {
    name,
    'dist-tags': { latest: version },
    versions: { [version]: { ...manifest, dist: { tarball: `${url}${name}/-/${tarball}` } } },
    _attachments: { [tarball]: { data: readFileSync(path, 'base64') } },
  };
}
