// Escapes characters that are not visible, such as control characters and direction marks.
export function visible(text) {
  return text.replace(/[^\P{C}\n]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}
