/** Where a store listens. */
export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** What `10.0.0.1:29500` or `[fd00::1]:29500` says; null for other text. */
export function parseHostAndPort(text: string): HostAndPort | null {
  const [, host, port] = /^\[?(.+?)\]?:(\d{1,5})$/.exec(text) ?? [];
  return host === undefined || Number(port) > 65535 ? null : { host, port: Number(port) };
}

/** The text that `parseHostAndPort` reads. */
export function formatHostAndPort({ host, port }: HostAndPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
