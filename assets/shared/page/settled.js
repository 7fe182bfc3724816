const SOON = 400; // ms from a change of the document to a look: a run of its script changes much

/** @type {(() => void)[]} */
const looks = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let soon;

/**
 * Look at the document now, and a moment after each change of it.
 *
 * @param {() => void} look
 */
export function settled(look) {
  looks.push(look);
  look();
}

new MutationObserver(() => {
  soon ??= setTimeout(() => {
    soon = undefined;
    for (const look of looks) look();
  }, SOON);
}).observe(document.documentElement, { childList: true, characterData: true, subtree: true });
