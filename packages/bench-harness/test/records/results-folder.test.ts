import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { identityOf } from '../../src/records/record.ts';
import {
  makeWritable,
  openResultsFolder,
  readFolders,
  readResults,
} from '../../src/records/results-folder.ts';
import { toyRecord, toyResult } from '../fixtures/records.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

describe('results folder', () => {
  it('keeps the latest record of each cell', () => {
    const path = temporaryFolder();
    const folder = openResultsFolder(path, identityOf(toyRecord()));
    folder.append(toyRecord());
    folder.append(toyRecord({ context: 32 }));
    folder.append(toyRecord({}, { result: toyResult(2) }));
    folder.close();
    expect(readResults(path)).toEqual([toyRecord({}, { result: toyResult(2) }), toyRecord({ context: 32 })]);
  });

  it('goes on with its own file, whatever a sweep that was interrupted at its start left behind', () => {
    const path = temporaryFolder();
    const identity = identityOf(toyRecord());
    const folder = openResultsFolder(path, identity);
    folder.append(toyRecord());
    folder.close();
    openResultsFolder(path, { ...identity, settings: { steps: 9 } }, { forceNew: true }).close();
    const again = openResultsFolder(path, identity);
    expect(again.earlier).toEqual([toyRecord()]);
    again.close();
    // The empty one is taken by who has none.
    const other = openResultsFolder(path, { ...identity, settings: { steps: 9 } });
    other.append(toyRecord({}, { settings: { steps: 9 } }));
    other.close();
    expect(readdirSync(path).sort()).toEqual(['results-2.jsonl', 'results.jsonl']);
  });

  it('counts the record of the file that was made last, beyond the tenth too', () => {
    const path = temporaryFolder();
    const identity = identityOf(toyRecord());
    for (let file = 1; file <= 11; file++) {
      const folder = openResultsFolder(path, identity, { forceNew: true });
      folder.append(toyRecord({}, { durationMs: file }));
      folder.close();
      expect(readResults(path).map(({ durationMs }) => durationMs)).toEqual([file]);
    }
    expect(readdirSync(path)).toHaveLength(11);
    const last = openResultsFolder(path, identity);
    expect(last.earlier.map(({ durationMs }) => durationMs)).toEqual([11]);
    last.close();
  });

  it('gives the lock back when it refuses', () => {
    const path = temporaryFolder();
    const folder = openResultsFolder(path, identityOf(toyRecord()));
    folder.append(toyRecord());
    folder.close();
    const other = { ...identityOf(toyRecord()), device: 'another' };
    expect(() => openResultsFolder(path, other)).toThrow(/device .* another asked/);
    openResultsFolder(path, identityOf(toyRecord())).close();
  });

  it('refuses results that other variables of the environment shaped, and names them', () => {
    const path = temporaryFolder();
    const folder = openResultsFolder(path, identityOf(toyRecord()));
    folder.append(toyRecord());
    folder.close();
    const other = { ...identityOf(toyRecord()), variables: { ROOFLINE_FLOAT32_MATMUL: 'simt' } };
    expect(() => openResultsFolder(path, other)).toThrow('ROOFLINE_FLOAT32_MATMUL none there, simt asked');
    const peer = { name: 'torch', version: '2.11.0' };
    const withPeer = { ...identityOf(toyRecord()), settings: { ...toyRecord().settings, peer } };
    expect(() => openResultsFolder(path, withPeer)).toThrow('peer none there, torch 2.11.0 asked');
  });

  it('names settings in words, and of another benchmark that alone', () => {
    const path = temporaryFolder();
    const identity = { ...identityOf(toyRecord()), settings: { bucketBytes: 1 } };
    const folder = openResultsFolder(path, identity);
    folder.append(toyRecord({}, { settings: { bucketBytes: 1 } }));
    folder.close();
    expect(() => openResultsFolder(path, { ...identity, settings: { bucketBytes: 2 } })).toThrow(
      'another sweep (bucket bytes 1 there, 2 asked).',
    );
    const memory = { ...identity, benchmark: 'memory', settings: { stackDepth: 20 } };
    expect(() => openResultsFolder(path, memory)).toThrow(
      'another sweep (benchmark e2e there, memory asked).',
    );
  });

  it('has of a cell that several folders hold the latest', () => {
    const folders = [3, 1, 2].map((hour) => {
      const path = temporaryFolder();
      const folder = openResultsFolder(path, identityOf(toyRecord()));
      folder.append(toyRecord({}, { startedAt: `2026-01-02T0${hour}:04:05.000Z` }));
      folder.append(toyRecord({ context: hour }));
      folder.close();
      return path;
    });
    const { records, repeated } = readFolders([...folders, folders[0]!]);
    expect(
      records.map(({ startedAt, parameters }) => [startedAt.slice(12, 13), parameters['context']]),
    ).toEqual([
      ['3', 16],
      ['3', 3],
      ['3', 1],
      ['3', 2],
    ]);
    expect(repeated).toBe(2);
  });

  it('says that a folder cannot be written', () => {
    const file = join(temporaryFolder(), 'file');
    writeFileSync(file, '');
    expect(() => makeWritable(join(file, 'below'))).toThrow(
      `Cannot write to ${join(file, 'below')}: ${file} is no folder. Choose another by --out.`,
    );
    expect(() => makeWritable(file)).toThrow(
      `Cannot write to ${file}: it is no folder. Choose another by --out.`,
    );
  });

  it('names the runs of a study, which are read one by one', () => {
    const path = temporaryFolder();
    mkdirSync(join(path, 'records', 'steps'), { recursive: true });
    expect(() => readResults(path)).toThrow(
      `${path} holds no results: it is that of a study: name folders of its runs, such as ${join(path, 'records', 'steps')}.`,
    );
  });

  it('says that there is nothing to read', () => {
    const path = temporaryFolder();
    expect(() => readResults(path)).toThrow(/holds no results/);
    expect(() => readResults(join(path, 'absent'))).toThrow(/does not exist/);
  });
});
