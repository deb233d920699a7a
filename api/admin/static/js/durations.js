// Durations as people type them: 30s, 10m, 4d, 1h30m, or a number of seconds. The same as api/config/durations.py.
const SECONDS = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** Return the seconds of a duration; NaN if it is none. */
export const secondsOf = (text) => {
  if (/^[0-9]+(\.[0-9]+)?$/.test(text)) return Number(text);
  if (!/^([0-9]+(\.[0-9]+)?(ms|[smhdw]))+$/.test(text)) return NaN;
  const parts = text.matchAll(/([0-9]+(?:\.[0-9]+)?)(ms|[smhdw])/g);
  return [...parts].reduce((sum, [, number, unit]) => sum + Math.round(Number(number) * SECONDS[unit] * 1000), 0) / 1000;
};
