// Starts GraphiQL on the address of this page. `?query=` and `?variables=` fill its editors. In the frame of the workbench, it
// asks the address that the page has elsewhere, with the credentials of the workbench.
"use strict";
(() => {
  const address = window.location.pathname.replace("/workbench/frames", "");
  const { requestHeaders = () => ({}), signInMembers = () => null } = window.parent;
  const given = new URLSearchParams(window.location.search);
  const post = async (asked, options) => {
    const answer = await fetch(address, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Accept: "application/graphql-response+json, application/json",
        ...requestHeaders(),
        ...(options && options.headers),
      },
      body: JSON.stringify(asked),
    });
    return answer.json();
  };
  // One subscription, on a WebSocket of its own (graphql-transport-ws), as an Observable.
  const follow = (asked) => ({
    subscribe: (observer) => {
      const place = new URL(`${address}/ws`, window.location.href);
      place.protocol = place.protocol === "https:" ? "wss:" : "ws:";
      const socket = new WebSocket(place, "graphql-transport-ws");
      const say = (message) => socket.send(JSON.stringify(message));
      let ended = false;
      const end = (tell) => {
        if (ended) return;
        ended = true;
        socket.close(1000);
        tell();
      };
      const heard = {
        connection_ack: () => say({ id: "1", type: "subscribe", payload: asked }),
        ping: () => say({ type: "pong" }),
        next: ({ payload }) => observer.next(payload),
        error: ({ payload }) => end(() => observer.error({ errors: payload })),
        complete: () => end(() => observer.complete()),
      };
      socket.onopen = () => say({ type: "connection_init", payload: signInMembers() || undefined });
      socket.onmessage = ({ data }) => {
        const message = JSON.parse(data);
        if (!ended && message.type in heard) heard[message.type](message);
      };
      socket.onclose = ({ code, reason }) =>
        end(() => observer.error({ message: `The connection has ended: ${code} ${reason}` }));
      return { unsubscribe: () => end(() => {}) };
    },
  });
  const isFollowed = ({ operationName }, options) =>
    ((options && options.documentAST && options.documentAST.definitions) || []).some(
      (one) =>
        one.kind === "OperationDefinition" &&
        one.operation === "subscription" &&
        (!operationName || (one.name && one.name.value === operationName)),
    );
  const fetcher = (asked, options) => (isFollowed(asked, options) ? follow(asked) : post(asked, options));
  const properties = { fetcher };
  for (const name of ["query", "variables"]) {
    if (given.get(name) !== null) properties[name] = given.get(name);
  }
  const place = document.getElementById("graphiql");
  ReactDOM.createRoot(place).render(React.createElement(GraphiQL, properties));
})();
