// Characters without a shape, among them those that turn the direction of a text, as escapes.
export function visible(text) {
  return text.replace(/[^\P{C}\n]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}
