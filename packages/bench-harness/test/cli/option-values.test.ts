import { describe, expect, it } from 'vitest';
import { completeList } from '../../src/cli/completion.ts';
import {
  parseChoices,
  parseList,
  parseDuration,
  parseNumber,
  parsePositiveNumber,
  parseWholeNumber,
  parseWholeNumbers,
} from '../../src/cli/option-values.ts';

describe('option values', () => {
  it('reads lists between commas and from repeated flags, each item once', () => {
    expect(parseList('size')('small, medium')).toEqual(['small', 'medium']);
    expect(parseWholeNumbers('context', 1)(['128,256', '128'])).toEqual([128, 256]);
  });

  it.each(['', 'small,', ',small'])('refuses the list %j', (given) => {
    expect(() => parseList('size')(given)).toThrow('--size wants one value or several');
  });

  it.each(['0', '-1', '1.5', '1e3', 'x', '99999999999999999999'])('refuses %j as a count', (given) => {
    expect(() => parseWholeNumber('steps', 1)(given)).toThrow(`--steps wants a whole number of at least 1`);
  });

  it.each(['0', '-3', 'x', '', 'Infinity'])('refuses %j as seconds', (given) => {
    expect(() => parsePositiveNumber('timeout')(given)).toThrow('--timeout wants a number above 0');
  });

  it.each(['', ' ', '\t', 'x', '-0.5', 'NaN'])('refuses %j as a number, blanks for 0 too', (given) => {
    const parse = parseNumber('clip', 'a number of at least 0', (value) => value >= 0);
    expect(() => parse(given)).toThrow(`--clip wants a number of at least 0, not '${given}'.`);
    expect(parse(' 0.5')).toBe(0.5);
  });

  it('refuses a choice that there is not', () => {
    expect(() => parseChoices('mode', ['forward', 'train-step'])('forward,trainstep')).toThrow(
      "Unknown mode 'trainstep'. Did you mean train-step?",
    );
  });
});

it('completes the last item of a list', () => {
  expect(completeList('small,m', ['small', 'medium', 'xl'])).toEqual(['small,medium']);
  expect(completeList('', ['small', 'xl'])).toEqual(['small', 'xl']);
});

it('reads a time with its unit', () => {
  const parse = parseDuration('budget');
  expect([parse('90s'), parse('10m'), parse('1.5h'), parse('0m')]).toEqual([90_000, 600_000, 5_400_000, 0]);
  for (const given of ['10', '', 'm', '-1m', '1d', '1e3s', '10 m'])
    expect(() => parse(given)).toThrow('--budget wants a time, as 90s, 10m or 1h');
});
