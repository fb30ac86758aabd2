// Draws each [data-figure] with Plotly from the JSON that the page carries, in the page's colours.
// The still SVG stays where this cannot run; the table of the same numbers is always there.
"use strict";

function token(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

function themed(figure) {
  const ink = token("--ink-2");
  const rule = token("--rule");
  const series = [token("--data-1"), token("--data-2"), token("--data-3")];
  const axis = { gridcolor: rule, linecolor: token("--rule-2"), zerolinecolor: rule, color: ink };
  const layout = {
    ...figure.layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink },
    hoverlabel: { bgcolor: token("--paper"), bordercolor: token("--rule-2"), font: { color: token("--ink") } },
    xaxis: { ...figure.layout.xaxis, ...axis },
    yaxis: { ...figure.layout.yaxis, ...axis },
  };
  const data = figure.data.map((trace, index) => ({
    ...trace,
    marker: { ...trace.marker, color: series[trace.meta?.series ?? index % series.length] },
    line: { ...trace.line, color: series[trace.meta?.series ?? index % series.length] },
  }));
  return { data, layout };
}

function draw(plot) {
  const figure = JSON.parse(document.getElementById(plot.dataset.figure).textContent);
  const { data, layout } = themed(figure);
  plot.querySelector("svg.still")?.remove();
  window.Plotly.react(plot, data, layout, { displayModeBar: false, responsive: true });
}

function drawAll(root) {
  if (!window.Plotly) return;
  for (const plot of root.querySelectorAll("[data-figure]")) draw(plot);
}

drawAll(document);
document.addEventListener("themechange", () => drawAll(document));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(document));
document.addEventListener("htmx:afterSettle", (event) => drawAll(event.target));
