// Starts GraphiQL on the address of this page. `?query=` and `?variables=` fill its editors.
"use strict";
(() => {
  const given = new URLSearchParams(window.location.search);
  const fetcher = async (asked, options) => {
    const answer = await fetch(window.location.pathname, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Accept: "application/graphql-response+json, application/json",
        ...(options && options.headers),
      },
      body: JSON.stringify(asked),
    });
    return answer.json();
  };
  const properties = { fetcher };
  for (const name of ["query", "variables"]) {
    if (given.get(name) !== null) properties[name] = given.get(name);
  }
  const place = document.getElementById("graphiql");
  ReactDOM.createRoot(place).render(React.createElement(GraphiQL, properties));
})();
