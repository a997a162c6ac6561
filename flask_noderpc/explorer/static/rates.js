// Draws responses per second and their mean latency, from counts in the page's live part.

const MOST = 60;
const WIDTH = 600;
const HEIGHT = 120;

const samples = [];
const rates = [];
const latencies = [];

function draw(name, values, text) {
  const top = Math.max(...values) || 1;
  const step = WIDTH / (MOST - 1);
  const from = WIDTH - step * (values.length - 1);
  const points = values.map((value, at) =>
    `${(from + at * step).toFixed(1)},${(HEIGHT - (HEIGHT - 4) * value / top).toFixed(1)}`);
  document.getElementById(`${name}-line`).setAttribute("points", points.join(" "));
  document.getElementById(name).textContent = text;
}

function sample() {
  const { count, seconds, now } = document.getElementById("live").dataset;
  samples.push([Number(count), Number(seconds), Number(now)]);
  if (samples.length < 2) return;
  const [before, after] = samples.slice(-2);
  samples.splice(0, samples.length - 2);
  const calls = after[0] - before[0];
  const passed = after[2] - before[2];
  // Skip a sample of another or a restarted process, which has other counts.
  if (passed <= 0 || calls < 0) return;
  rates.push(calls / passed);
  latencies.push(calls ? 1000 * (after[1] - before[1]) / calls : 0);
  for (const values of [rates, latencies]) values.splice(0, values.length - MOST);
  draw("answers", rates, `${rates.at(-1).toFixed(1)} now, ${Math.max(...rates).toFixed(1)} at most`);
  draw("latency", latencies, `${latencies.at(-1).toFixed(2)} ms now, ${Math.max(...latencies).toFixed(2)} ms at most`);
}

document.addEventListener("refreshed", sample);
sample();
