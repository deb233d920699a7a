// Charts of the service's own time series, asked for over REST and drawn by uPlot; each has the same numbers as a table.
// The title line shows the values at the crosshair, else the last ones with minimum and maximum. Marks show what was done.
import { callApi } from "./api.js";
import { drawMarks, loadMarks, markAt, marksTable } from "./marks.js";
import { rangeSeconds } from "./preferences.js";
import { onRefreshAsked } from "./refresh.js";
import { spellTime } from "./times.js";

const drawn = new WeakMap();
const PX = () => devicePixelRatio;
const HEIGHT = 182;

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];
const short = (value) => {
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (Math.abs(value) >= limit) return `${+(value / limit).toFixed(1)}${unit}`;
  return String(+value.toFixed(value < 10 ? 2 : 0));
};
const bytes = (value) => {
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < SIZES.length - 1) (value /= 1024), (unit += 1);
  return `${+value.toFixed(1)} ${SIZES[unit]}`;
};
const ms = (value) => {
  for (const [limit, unit] of [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]]) if (value >= limit) return `${+(value / limit).toFixed(1)} ${unit}`;
  return `${Math.round(value)} ms`;
};
const SPELL = { count: short, rate: (value) => `${short(value)}/s`, bytes, seconds: (value) => ms(value * 1000), ratio: (value) => `${+(value * 100).toFixed(1)} %` };

// Steps that people count in: a chart of ages goes by minutes and hours, one of bytes by powers of two.
const INCREMENTS = {
  seconds: [0.001, 0.01, 0.1, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000],
  bytes: Array.from({ length: 50 }, (_, power) => 2 ** power),
};

const spellTick = (seconds, step) => {
  const text = spellTime(seconds * 1000);
  return step >= 86400 ? text.slice(5, 10) : step >= 60 ? text.slice(11, 16) : text.slice(11, 19);
};

// light-dark() is resolved where it is used, so a colour is read from something that is drawn with it.
const colour = (name) => {
  const probe = document.createElement("i");
  probe.className = "sr";
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

const columnsOf = (figure) => figure.dataset.columns.split(",").map((column) => column.split(":"));

const options = (figure, width) => {
  const spell = SPELL[figure.dataset.unit];
  const [muted, line] = [colour("--muted"), colour("--line")];
  const font = "11px Inter, system-ui, sans-serif";
  const axis = { stroke: muted, font, grid: { stroke: line, width: 1 / PX() }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    cursor: { points: { size: 6 }, drag: { x: false, y: false }, sync: { key: "ms" } },
    hooks: { draw: [(chart) => drawMarks(chart, figure.marks, muted)], setCursor: [(chart) => caption(figure, chart)] },
    scales: { x: { time: true }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    axes: [
      { ...axis, space: 70, size: 26, values: (_, ticks, __, ___, step) => ticks.map((tick) => spellTick(tick, step)) },
      { ...axis, size: 56, incrs: INCREMENTS[figure.dataset.unit], values: (_, values) => values.map(spell) },
    ],
    series: [
      {},
      ...columnsOf(figure).map((_, index) => ({
        stroke: colour(`--series-${index + 1}`),
        width: 1.5,
        points: { show: false },
        fill: index === 0 ? `color-mix(in srgb, ${colour("--series-1")} 10%, transparent)` : undefined,
      })),
    ],
    legend: { show: false },
  };
};

const dataOf = (figure, told) => {
  const names = columnsOf(figure).map(([name]) => name);
  const length = told.columns[names[0]]?.length ?? 0;
  const start = Date.parse(told.start_at) / 1000;
  const times = Array.from({ length }, (_, index) => start + index * told.step_seconds);
  return fromFirstSample([times, ...names.map((name) => told.columns[name] ?? Array(length).fill(null))]);
};

// What is younger than the range fills the chart all the same.
const fromFirstSample = (data) => {
  const first = data[0].findIndex((_, index) => data.slice(1).some((column) => column[index] != null));
  return first > 0 ? data.map((column) => column.slice(Math.min(first, column.length - 2))) : data;
};

const summary = (column, spell) => {
  const values = column.filter((value) => value != null);
  if (!values.length) return ["–", ""];
  const [low, high] = [Math.min(...values), Math.max(...values)].map(spell);
  return [spell(values.at(-1)), low === high ? "" : `${low} to ${high}`];
};

// The title line: values at the crosshair of this chart or of another one on the page, else the last ones.
const caption = (figure, chart) => {
  const spell = SPELL[figure.dataset.unit];
  const at = chart.cursor.idx;
  const shows = at != null && chart.cursor.left >= 0;
  figure.querySelectorAll(".legend li").forEach((item, index) => {
    const column = chart.data[index + 1];
    const [value, range] = shows ? [column[at] == null ? "–" : spell(column[at]), ""] : summary(column, spell);
    item.querySelector("b").textContent = value;
    item.querySelector("small").textContent = range;
  });
  const mark = shows ? markAt(chart, figure.marks) : "";
  figure.querySelector(".legend-time").textContent = mark || (shows ? spellTime(chart.data[0][at] * 1000) : "");
};

const note = (figure, text) => {
  const place = figure.querySelector(".plot");
  place.querySelector(".plot-note")?.remove();
  if (!text) return;
  const line = document.createElement("div");
  line.className = "plot-note";
  line.textContent = text;
  place.append(line);
};

const tabulate = (figure, data) => {
  const details = figure.querySelector(".as-table");
  if (!details.open) return;
  const spell = SPELL[figure.dataset.unit];
  const table = document.createElement("table");
  const row = table.createTHead().insertRow();
  for (const label of ["Time", ...columnsOf(figure).map(([, label]) => label)]) {
    const head = document.createElement("th");
    head.scope = "col";
    head.textContent = label;
    row.append(head);
  }
  const body = table.createTBody();
  for (let index = data[0].length - 1; index >= 0; index -= 1) {
    const line = body.insertRow();
    line.insertCell().textContent = spellTime(data[0][index] * 1000);
    for (const column of data.slice(1)) line.insertCell().textContent = column[index] == null ? "–" : spell(column[index]);
  }
  const wrap = details.querySelector(".table-wrap");
  wrap.tabIndex = 0;
  wrap.replaceChildren(...marksTable(figure.marks), table);
};

const draw = (figure, data) => {
  const place = figure.querySelector(".plot");
  const chart = drawn.get(figure);
  if (chart && chart.root.isConnected) chart.setData(data);
  else drawn.set(figure, new window.uPlot(options(figure, place.clientWidth), data, place));
  caption(figure, drawn.get(figure));
  note(figure, data.slice(1).some((column) => column.some((value) => value != null)) ? "" : "No data yet");
  tabulate(figure, data);
};

const asked = new Map();
const load = async (path) => {
  if (!asked.has(path)) {
    asked.set(path, callApi("GET", path).finally(() => asked.delete(path)));
  }
  return (await asked.get(path)).told;
};

// Charts of the same series share one call, which asks for their columns alone.
const addressOf = (figure) => {
  const path = figure.dataset.series;
  const columns = new Set();
  for (const one of all()) if (one.dataset.series === path) for (const [name] of columnsOf(one)) columns.add(name);
  return `${path}?window_seconds=${rangeSeconds()}&columns=${[...columns].join(",")}`;
};

const update = async (figure) => {
  try {
    const [told, marks] = await Promise.all([load(addressOf(figure)), loadMarks(figure, rangeSeconds())]);
    figure.marks = marks;
    draw(figure, dataOf(figure, told));
  } catch (error) {
    if (!drawn.has(figure)) note(figure, error.message);
  }
};

const all = () => document.querySelectorAll("figure[data-series]");
const updateAll = () => all().forEach(update);
const drawAnew = () => {
  for (const figure of all()) {
    drawn.get(figure)?.destroy();
    drawn.delete(figure);
  }
  updateAll();
};

export const installCharts = () => {
  if (!all().length || !window.uPlot) return;
  updateAll();
  onRefreshAsked(updateAll);
  document.addEventListener("ms:preferences", drawAnew);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAnew);
  document.addEventListener("toggle", (event) => event.target.matches?.(".as-table") && updateAll(), true);
  new ResizeObserver(() => {
    for (const figure of all()) drawn.get(figure)?.setSize({ width: figure.querySelector(".plot").clientWidth, height: HEIGHT });
  }).observe(document.getElementById("page"));
};
