// The main journey in Firefox, by WebDriver BiDi: node tests/browser/firefox.js FIREFOX ADDRESS RUN
// (test_firefox.py runs it). It drags a point, starts and cancels a training run, and opens a
// failure of a run with its forces. It ends with an error if a step is impossible.
import { setTimeout as pause } from "node:timers/promises";
import { launch } from "puppeteer-core";

const [executablePath, address, run] = process.argv.slice(2);
const PATIENCE = 60_000; // milliseconds: CI has two slow cores

// Puppeteer's own waiting overlooks shadow roots.
/** Poll `read` until its value fulfils `wanted`, and return the value. */
async function becomes(read, wanted = Boolean, end = Date.now() + PATIENCE) {
  const value = await read();
  if (wanted(value)) return value;
  if (Date.now() > end) throw new Error(`${read} stays ${value}, wanted: ${wanted}`);
  await pause(100);
  return becomes(read, wanted, end);
}

/** Poll `read` until it has returned the same value five times in a row, and return the value. */
async function rests(read) {
  const seen = [];
  return becomes(read, (value) => {
    seen.push(JSON.stringify(value));
    return seen.length >= 5 && seen.slice(-5).every((each) => each === seen.at(-1));
  });
}

/** The first element of a selector, in whatever shadow root it lies. */
async function found(page, selector) {
  const end = Date.now() + PATIENCE;
  return becomes(() => page.$(`>>> ${selector}`), Boolean, end).catch((error) => {
    throw new Error(`not on ${page.url()}: ${selector}`, { cause: error });
  });
}

/** Click an element; find it again if the page has replaced it before the click. */
async function click(page, selector, end = Date.now() + PATIENCE) {
  try {
    await (await found(page, selector)).click();
  } catch (error) {
    if (Date.now() > end) throw error;
    await pause(100);
    await click(page, selector, end);
  }
}
const arrives = (page, pattern) =>
  becomes(
    () => page.url(),
    (url) => pattern.test(url),
  );
const words = (page) => page.evaluate(() => document.body.innerText);

async function movesAPoint(page) {
  await page.goto(address);
  await click(page, "a ::-p-text(Play with a loss)");
  await arrives(page, /\/fields/);
  await found(page, "canvas.plane[data-seq]");
  const negative = await found(page, "[aria-label^='negative at']");
  await negative.press("ArrowUp"); // ends the opening show
  const box = await rests(() => negative.boundingBox());
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x - 78, y - 138, { steps: 12 });
  await page.mouse.up();
  const triplet = await found(page, "[data-readout=triplet]");
  await becomes(
    () => triplet.evaluate((node) => node.textContent),
    (text) => text === "satisfied",
  );
}

async function trains(page) {
  await click(page, "[data-testid=stTopNavSection] ::-p-text(Training)");
  await click(page, "[role=menuitem] ::-p-text(New run)");
  await arrives(page, /\/data/);
  await click(page, "a:not([disabled]) ::-p-text(Next: settings)");
  await arrives(page, /\/settings/);
  const steps = await found(page, "input[aria-label^=Steps]");
  await steps.click({ count: 3 });
  await steps.type("20000"); // minutes: it works until it is cancelled
  await steps.press("Enter");
  await click(page, "a[href*='20000']:not([disabled]) ::-p-text(Next: start)");
  await arrives(page, /\/start/);
  await click(page, "button:not([disabled]) ::-p-text(Start training)");
  await arrives(page, /\/runs\?.*run=/);
  await click(page, "button ::-p-text(Cancel)");
  await becomes(
    () => words(page),
    (text) => /stopping|cancelled/i.test(text),
  );
}

async function asksWhy(page) {
  // As a press of Back does: the app is not loaded again (harness.py).
  await page.evaluate((link) => {
    history.pushState({}, "", link);
    dispatchEvent(new PopStateEvent("popstate"));
  }, `/neighbours?run=${run}&failures=true`);
  await found(page, "button ::-p-text(Keys)"); // until what listens has come, a key is lost
  const wrong = await found(page, ".neighbours .wrong a.frame");
  const image = await wrong.$("img");
  await becomes(() => image.evaluate((node) => node.complete && node.naturalWidth > 0));
  const index = await wrong.evaluate((node) => node.dataset.index);
  await wrong.press("f");
  await arrives(page, new RegExp(`/failure.*wrong=${index}`));
  await found(page, "canvas.plane[data-seq]");
}

const browser = await launch({
  browser: "firefox",
  executablePath,
  extraPrefsFirefox: { "ui.prefersReducedMotion": 1 }, // animations would take as long as they play
  defaultViewport: { width: 1440, height: 900 },
  timeout: PATIENCE,
});
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.setDefaultNavigationTimeout(3 * PATIENCE); // the first page loads the whole app
  const errors = [];
  // long.js of Streamlit tries WebAssembly, which the content policy forbids, and does without.
  // Firefox also reports a socket that is still opening when its page is left.
  const expected =
    /WebAssembly|(to the server at|to) ws:\S+( was interrupted while the page was loading)?\.$/;
  page.on("pageerror", ({ message }) => expected.test(message) || errors.push(message));
  await movesAPoint(page);
  await trains(page);
  await asksWhy(page);
  if (await page.$("[data-testid=stException]")) errors.push(await words(page));
  if (errors.length) throw new Error(errors.join("\n"));
} finally {
  await browser.close();
}
