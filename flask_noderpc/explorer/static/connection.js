// A websocket of the node with one subscription, which is renewed when the connection ends.

const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 30_000;

// Returns the URL of the websocket: path from the page, host and TLS from the browser.
export function address() {
  const url = new URL(new URL(document.body.dataset.websocket, location).pathname, location);
  url.protocol = location.protocol.replace("http", "ws");
  return url;
}

// Subscribes to a query. Calls `onOpen` when the node has accepted the subscription, `onEvent`
// with the result of each event, `onClose` when the connection has ended, and `onRefused` with
// the error if the node refuses the subscription. Returns a function that ends it.
export function follow(query, { onOpen, onEvent, onClose, onRefused }) {
  let socket;
  let timer;
  let delay = FIRST_DELAY_MS;
  let isOver = false;

  function connect() {
    socket = new WebSocket(address());
    socket.onopen = () => {
      const call = { jsonrpc: "2.0", id: 1, method: "subscribe", params: { query } };
      socket.send(JSON.stringify(call));
    };
    socket.onmessage = ({ data }) => {
      const { result, error } = JSON.parse(data);
      if (isOver) return;
      if (error && delay !== 0) {
        refused(error);
      } else if (error) {
        // The subscription fell behind. Reconnecting refreshes the page, which shows all.
        socket.close();
      } else if (result.data) {
        onEvent(result, data);
      } else {
        delay = 0;
        onOpen();
      }
    };
    socket.onclose = () => {
      if (isOver) return;
      onClose();
      delay = delay === 0 ? FIRST_DELAY_MS : delay;
      timer = setTimeout(connect, delay);
      delay = Math.min(2 * delay, LONGEST_DELAY_MS);
    };
  }

  function refused(error) {
    if (!onRefused) {
      socket.close();
      return;
    }
    end();
    onRefused(error);
  }

  function end() {
    isOver = true;
    clearTimeout(timer);
    socket.close();
  }

  connect();
  return end;
}
