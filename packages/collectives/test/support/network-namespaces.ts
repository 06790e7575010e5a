import { spawnSync } from 'node:child_process';

function ip(...words: string[]): boolean {
  return spawnSync('ip', words, { stdio: 'ignore' }).status === 0;
}

/** Two "hosts": network namespaces with a cable between them. */
export class TwoHosts {
  readonly addresses = ['10.213.7.1', '10.213.7.2'] as const;
  readonly #names: readonly [string, string];

  private constructor(names: readonly [string, string]) {
    this.#names = names;
  }

  /** Null where this process may not make them. */
  static open(): TwoHosts | null {
    const names = [`rl${process.pid}a`, `rl${process.pid}b`] as const;
    const hosts = new TwoHosts(names);
    const [first, second] = names;
    const isMade =
      names.every((name) => ip('netns', 'add', name)) &&
      ip('link', 'add', 'veth0', 'netns', first, 'type', 'veth', 'peer', 'name', 'veth0', 'netns', second) &&
      names.every(
        (name, i) =>
          ip('-n', name, 'addr', 'add', `${hosts.addresses[i]}/24`, 'dev', 'veth0') &&
          ip('-n', name, 'link', 'set', 'veth0', 'up') &&
          ip('-n', name, 'link', 'set', 'lo', 'up'),
      );
    if (isMade) return hosts;
    hosts.close();
    return null;
  }

  /** What runs a command on one of them. */
  prefix(host: 0 | 1): readonly string[] {
    return ['ip', 'netns', 'exec', this.#names[host]];
  }

  cut(): void {
    ip('-n', this.#names[0], 'link', 'set', 'veth0', 'down');
  }

  close(): void {
    for (const name of this.#names) ip('netns', 'del', name);
  }
}

/** Whether this machine lets us make them. */
export const hasNamespaces = ((): boolean => {
  const hosts = TwoHosts.open();
  hosts?.close();
  return hosts !== null;
})();
