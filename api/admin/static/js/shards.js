// What a split or a merge would make of the ring, before it is asked for. Hash keys are beyond what a Number holds.
const RING = 1n << 128n;
const share = (first, next) => {
  const percent = Number(((next - first) * 100000n) / RING) / 1000;
  return `${percent >= 10 ? percent.toFixed(0) : percent.toFixed(1)} %`;
};
const rangeOf = (select) => {
  const { first, last } = select.selectedOptions[0].dataset;
  return [BigInt(first), BigInt(last) + 1n];
};

const showSplit = () => {
  const select = document.querySelector("[data-split]");
  if (!select) return;
  const [first, next] = rangeOf(select);
  const { median, larger, sampled } = select.selectedOptions[0].dataset;
  document.querySelector("[data-split-median]").hidden = !median;
  const byLoad = median && document.querySelector("[data-split-by-load]").checked;
  document.querySelector("[data-split-place]").hidden = byLoad;
  const at = byLoad ? BigInt(median) : first + ((next - first) * BigInt(document.querySelector("[data-split-at]").value)) / 100n;
  document.querySelector("[data-split-key]").value = String(at);
  const ranges = `Shard ${select.value} (${share(first, next)} of the hash keys) splits into ${share(first, at)} and ${share(at, next)}.`;
  const load = byLoad ? ` The busier one gets ${larger} of its records.` : sampled != null && !median ? " One key has most of its records: a split does not help." : "";
  document.querySelector("[data-split-preview]").textContent = ranges + load;
};

const showMerge = () => {
  const select = document.querySelector("[data-merge]");
  if (!select) return;
  const [first, next] = rangeOf(select);
  const [one, other] = JSON.parse(select.value);
  document.querySelector("[data-merge-preview]").textContent = `Shards ${one} and ${other} merge into one with ${share(first, next)} of the hash keys.`;
};

document.addEventListener("input", (event) => {
  if (event.target.matches("[data-split], [data-split-at], [data-split-by-load]")) showSplit();
  if (event.target.matches("[data-merge]")) showMerge();
});
document.addEventListener("ms:open", () => (showSplit(), showMerge()));
