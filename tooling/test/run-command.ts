import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What a command prints. Throws an error that holds all its output. */
export async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  variables: NodeJS.ProcessEnv = {},
): Promise<string> {
  // NODE_PATH, which pnpm sets for the programs that it starts, would hide a missing package, and npm's own variables
  // would hide the .npmrc of `cwd`.
  const own = Object.entries(process.env).filter(([name]) => !/^npm_config_(user|global)config$/i.test(name));
  const env = { ...Object.fromEntries(own), ...variables, NODE_PATH: undefined };
  const options = { cwd, env, timeout: 600_000, maxBuffer: 2 ** 26 };
  try {
    return (await promisify(execFile)(command, args, options)).stdout;
  } catch (cause) {
    const { stdout, stderr } = cause as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause });
  }
}
