/** download has the browser save a text as a file. */
export function download(file: string, text: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = file;
  link.click();
  // The download has begun when the event is over.
  setTimeout(() => {
    URL.revokeObjectURL(address);
  });
}
