// Shows the OpenAPI document of the service that this page comes from. In the frame of the workbench, requests have its credentials.
"use strict";
const { requestHeaders = () => ({}) } = window.parent;
SwaggerUIBundle({
  url: window.location.pathname.replace(/(\/workbench\/frames)?\/docs\/?$/, "/openapi.json"),
  requestInterceptor: (request) => ({ ...request, headers: { ...request.headers, ...requestHeaders() } }),
  dom_id: "#docs",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  // no badge of a validator that another host runs
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
