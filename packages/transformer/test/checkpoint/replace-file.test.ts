import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { FileReplacement, replaceFile as replace } from '../../src/checkpoint/replace-file.ts';
import { temporaryFolder } from './temporary-folder.ts';

const path = temporaryFolder();
const write = (text: string) => (file: number) => void writeSync(file, text);
const replaceFile = (target: string, by: (file: number) => void) =>
  replace(target, by, (reason) => new Error(reason));
const module = resolve(import.meta.dirname, '../../src/checkpoint/replace-file.ts');

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** A process that has begun to write a file, and does not come to its end. */
async function writing(target: string): Promise<ChildProcess> {
  const program = `
    import { writeSync } from 'node:fs';
    import { replaceFile } from ${JSON.stringify(module)};
    replaceFile(${JSON.stringify(target)}, (file) => {
      writeSync(file, 'half');
      writeSync(1, 'begun');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const flags = [
    '--conditions=roofline-source',
    '--disable-warning=ExperimentalWarning',
    '--input-type=module',
  ];
  const child = spawn(process.execPath, [...flags, '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  await once(child.stdout!, 'data');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

const partials = (folder: string) => readdirSync(folder).filter((name) => name.endsWith('.partial'));

describe.skipIf(process.platform === 'win32')('what killed processes have left of a file', () => {
  it('is removed when it is written again, and no sooner than they have ended', async () => {
    const folder = path('killed');
    mkdirSync(folder);
    const target = `${folder}/model.safetensors`;
    writeFileSync(target, 'before');
    for (let run = 0; run < 2; run++) {
      await kill(await writing(target));
      expect(partials(folder)).toHaveLength(1);
    }
    const alive = await writing(target);
    const [own] = partials(folder) as [string];
    expect(partials(folder)).toEqual([own]);
    expect(readFileSync(target, 'utf8')).toBe('before');
    replaceFile(target, write('after'));
    expect(partials(folder)).toEqual([own]);
    expect(readFileSync(`${folder}/${own}`, 'utf8')).toBe('half');
    await kill(alive);
    for (const [text, leftovers] of [
      ['restarted', 'removed'],
      ['again', 'none'],
    ] as const) {
      using replacement = new FileReplacement(target, (reason) => new Error(reason));
      expect(replacement.leftovers).toBe(leftovers);
      write(text)(replacement.file);
      replacement.commit();
    }
    expect(readdirSync(folder)).toEqual(['model.safetensors']);
    expect(readFileSync(target, 'utf8')).toBe('again');
  });

  it('is gone on with where that is wanted, once, and only after its process has ended', async () => {
    const folder = path('adopted');
    mkdirSync(folder);
    const target = `${folder}/a`;
    const adopting = (wanted: string) =>
      new FileReplacement(
        target,
        (reason) => new Error(reason),
        (file) => readFileSync(file, 'utf8') === wanted,
      );
    const alive = await writing(target);
    {
      using own = adopting('half');
      expect(own.leftovers).toBe('none');
    }
    await kill(alive);
    for (const name of ['0123456789abcdef', '1123456789abcdef'])
      writeFileSync(`${folder}/a.${name}.partial`, 'half');
    using adopted = adopting('half');
    expect(adopted.leftovers).toBe('adopted');
    expect(partials(folder)).toHaveLength(1);
    using other = adopting('half');
    expect(other.leftovers).toBe('none');
    writeSync(adopted.file, ' more', 4);
    adopted.commit();
    expect(readFileSync(target, 'utf8')).toBe('half more');
    writeFileSync(`${folder}/a.2123456789abcdef.partial`, 'other');
    using last = adopting('half');
    expect(last.leftovers).toBe('removed');
  });

  it('is recognised by its whole name', () => {
    const folder = path('named');
    mkdirSync(folder);
    const others = [
      'a.0123456789abcdef.partial2',
      'a.0123456789abcde.partial',
      'a.0123456789abcdeg.partial',
      'a.b.0123456789abcdef.partial',
      'b.0123456789abcdef.partial',
      'ba.0123456789abcdef.partial',
      'a0123456789abcdef.partial',
    ];
    for (const name of [...others, 'a.0123456789abcdef.partial']) writeFileSync(`${folder}/${name}`, '');
    mkdirSync(`${folder}/a.1123456789abcdef.partial`);
    symlinkSync(others[0]!, `${folder}/a.2123456789abcdef.partial`);
    replaceFile(`${folder}/a`, write('new'));
    const kept = [...others, 'a', 'a.1123456789abcdef.partial', 'a.2123456789abcdef.partial'];
    expect(readdirSync(folder).sort()).toEqual(kept.sort());
  });

  it('is found where a link leads to', () => {
    mkdirSync(path('far'));
    writeFileSync(path('far/model.0123456789abcdef.partial'), '');
    symlinkSync('far/model', path('near'));
    replaceFile(path('near'), write('new'));
    expect(readdirSync(path('far'))).toEqual(['model']);
  });
});

describe.skipIf(process.platform === 'win32')('a link that leads to no file yet', () => {
  it.each<[what: string, links: readonly (readonly [at: string, to: string])[], target: string]>([
    ['relative', [['link', 'model']], 'model'],
    ['absolute', [['link', '/model']], 'model'],
    [
      'of two links',
      [
        ['link', 'deep/next'],
        ['deep/next', '../model'],
      ],
      'model',
    ],
    [
      'out of a folder that is a link',
      [
        ['folder', 'deep/deeper'],
        ['deep/deeper/link', '../model'],
        ['link', 'folder/link'],
      ],
      'deep/model',
    ],
    [
      'over a folder that is a link',
      [
        ['folder', 'deep/deeper'],
        ['link', 'folder/../model'],
      ],
      'deep/model',
    ],
  ])('leads to it afterwards: %s', (what, links, target) => {
    const folder = path(what.replaceAll(' ', '-'));
    mkdirSync(`${folder}/deep/deeper`, { recursive: true });
    const ends = links.map(
      ([at, to]) => [`${folder}/${at}`, to.startsWith('/') ? `${folder}${to}` : to] as const,
    );
    for (const [at, to] of ends) symlinkSync(to, at);
    for (const text of ['first', 'second']) {
      replaceFile(`${folder}/link`, write(text));
      expect(ends.map(([at]) => readlinkSync(at))).toEqual(ends.map(([, to]) => to));
      expect(lstatSync(`${folder}/${target}`).isFile()).toBe(true);
      expect(readFileSync(`${folder}/link`, 'utf8')).toBe(text);
    }
  });

  it('stays where its folder is missing, or it leads to itself', () => {
    symlinkSync('missing/model', path('lost'));
    expect(() => replaceFile(path('lost'), write(''))).toThrow(/ENOENT.*missing\/model/);
    symlinkSync('circle', path('circle'));
    expect(() => replaceFile(path('circle'), write(''))).toThrow(/ELOOP/);
    expect(['lost', 'circle'].map((name) => readlinkSync(path(name)))).toEqual(['missing/model', 'circle']);
  });
});
