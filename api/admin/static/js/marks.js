// Marks on the time axis of charts: administrative calls on the object, from the audit log, and starts of processes.
import { callApi } from "./api.js";
import { spellTime } from "./times.js";

const MARKS_MAX = 50;
const NEAR_PX = 6;
const CACHED_MS = 30000;

const cache = new Map();

// The charts of a page share one call, which a page that refreshes repeats twice a minute.
const listItems = (path, query = "") => {
  const cached = cache.get(path);
  if (cached && Date.now() - cached.at < CACHED_MS) return cached.items;
  const items = callApi("GET", path + query).then((result) => result.told.items, () => []);
  cache.set(path, { at: Date.now(), items });
  return items;
};

const calls = async (figure, since) => {
  const [, resource] = figure.dataset.series.match(/^\/v1\/(.+)\/series$/) ?? [];
  if (!resource) return [];
  const from = new Date(since).toISOString();
  const query = new URLSearchParams({ namespace: figure.dataset.namespace, from, limit: MARKS_MAX });
  const entries = await listItems(`/v1/audit?resource=${encodeURIComponent(resource)}`, `&${query}`);
  return entries
    .filter((entry) => entry.outcome === "done")
    .map((entry) => ({ at: Date.parse(entry.called_at), text: `${entry.operation.replaceAll("_", " ")}, by ${entry.principal}` }));
};

const starts = async () =>
  (await listItems("/v1/processes")).map((process) => ({ at: Date.parse(process.started_at), text: `${process.role} started on ${process.host}, version ${process.version}` }));

// Marks within the range, oldest first. What the caller may not see has none.
export const loadMarks = async (figure, seconds) => {
  const since = Date.now() - seconds * 1000;
  const kinds = (figure.dataset.marks ?? "").split(" ");
  const marks = await Promise.all([kinds.includes("audit") ? calls(figure, since) : [], kinds.includes("processes") ? starts() : []]);
  return marks.flat().filter((mark) => mark.at >= since).sort((one, other) => one.at - other.at);
};

const visible = (chart, marks) => {
  const { min, max } = chart.scales.x;
  return (marks ?? []).filter(({ at }) => at / 1000 >= min && at / 1000 <= max);
};

export const drawMarks = (chart, marks, colour) => {
  const { ctx, bbox } = chart;
  const size = 5 * devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { at } of visible(chart, marks)) {
    const x = Math.round(chart.valToPos(at / 1000, "x", true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x - size, bbox.top);
    ctx.lineTo(x + size, bbox.top);
    ctx.lineTo(x, bbox.top + size);
    ctx.fill();
  }
  ctx.restore();
};

// The text of the mark at the crosshair; several that are as near are joined.
export const markAt = (chart, marks) =>
  visible(chart, marks)
    .filter(({ at }) => Math.abs(chart.valToPos(at / 1000, "x") - chart.cursor.left) <= NEAR_PX)
    .map(({ at, text }) => `${spellTime(at)} ${text}`)
    .join("; ");

// The marks as a table for those who do not see the chart; none without marks.
export const marksTable = (marks) => {
  if (!marks?.length) return [];
  const table = document.createElement("table");
  table.className = "marks";
  const head = table.createTHead().insertRow();
  for (const label of ["Time", "Event"]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = label;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const { at, text } of [...marks].reverse()) {
    const row = body.insertRow();
    row.insertCell().textContent = spellTime(at);
    row.insertCell().textContent = text;
  }
  return [table];
};
