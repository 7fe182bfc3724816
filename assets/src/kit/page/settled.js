// Delay in ms between a change of the document and the callback; one script run changes the
// document many times.
const SOON = 400;

/** @type {(() => void)[]} */
const looks = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let soon;

/**
 * Call `look` now and shortly after each change of the document.
 *
 * @param {() => void} look
 */
export function watchDocument(look) {
  looks.push(look);
  look();
}

new MutationObserver(() => {
  soon ??= setTimeout(() => {
    soon = undefined;
    for (const look of looks) look();
  }, SOON);
}).observe(document.documentElement, { childList: true, characterData: true, subtree: true });
