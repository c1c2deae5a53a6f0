import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.BytesRefIterator;
import org.elasticsearch.action.ActionListener;
import org.elasticsearch.cluster.node.DiscoveryNode;
import org.elasticsearch.common.bytes.BytesArray;
import org.elasticsearch.common.bytes.BytesReference;
import org.elasticsearch.common.component.AbstractLifecycleComponent;
import org.elasticsearch.common.io.stream.NamedWriteableRegistry;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.network.NetworkService;
import org.elasticsearch.common.recycler.Recycler;
import org.elasticsearch.common.settings.ClusterSettings;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.common.transport.BoundTransportAddress;
import org.elasticsearch.common.transport.TransportAddress;
import org.elasticsearch.common.util.BigArrays;
import org.elasticsearch.common.util.PageCacheRecycler;
import org.elasticsearch.common.util.concurrent.ThreadContext;
import org.elasticsearch.env.Environment;
import org.elasticsearch.http.AbstractHttpServerTransport;
import org.elasticsearch.http.HttpBody;
import org.elasticsearch.http.HttpChannel;
import org.elasticsearch.http.HttpPreRequest;
import org.elasticsearch.http.HttpRequest;
import org.elasticsearch.http.HttpResponse;
import org.elasticsearch.http.HttpServerChannel;
import org.elasticsearch.http.HttpServerTransport;
import org.elasticsearch.indices.breaker.CircuitBreakerService;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.NetworkPlugin;
import org.elasticsearch.plugins.Plugin;
import org.elasticsearch.plugins.PluginsLoader;
import org.elasticsearch.rest.ChunkedRestResponseBodyPart;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.RestStatus;
import org.elasticsearch.telemetry.tracing.Tracer;
import org.elasticsearch.threadpool.ThreadPool;
import org.elasticsearch.transport.BytesRefRecycler;
import org.elasticsearch.transport.ConnectionProfile;
import org.elasticsearch.transport.Transport;
import org.elasticsearch.transport.TransportMessageListener;
import org.elasticsearch.transport.TransportStats;
import org.elasticsearch.xcontent.NamedXContentRegistry;

/**
 * What is not published as a library of Elasticsearch 8: HTTP, served by Netty as there; and a network, of a node
 * that has no others.
 */
public final class ElasticsearchNode extends Plugin implements NetworkPlugin {
    @Override
    public Map<String, Supplier<Transport>> getTransports(
        Settings settings,
        ThreadPool threads,
        PageCacheRecycler pages,
        CircuitBreakerService breakers,
        NamedWriteableRegistry names,
        NetworkService network
    ) {
        return Map.of("library", Alone::new);
    }

    @Override
    public Map<String, Supplier<HttpServerTransport>> getHttpTransports(
        Settings settings,
        ThreadPool threads,
        BigArrays arrays,
        PageCacheRecycler pages,
        CircuitBreakerService breakers,
        NamedXContentRegistry names,
        NetworkService network,
        HttpServerTransport.Dispatcher dispatcher,
        BiConsumer<HttpPreRequest, ThreadContext> context,
        ClusterSettings cluster,
        Tracer tracer
    ) {
        return Map.of(
            "library",
            () -> new Edge(settings, network, new BytesRefRecycler(pages), threads, names, dispatcher, cluster, tracer)
        );
    }

    /** HTTP/1.1 with bodies as a whole, a request of a connection after the other. */
    private static final class Edge extends AbstractHttpServerTransport {
        private final EventLoopGroup loops = new NioEventLoopGroup(Runtime.getRuntime().availableProcessors());

        Edge(
            Settings settings,
            NetworkService network,
            Recycler<BytesRef> recycler,
            ThreadPool threads,
            NamedXContentRegistry names,
            HttpServerTransport.Dispatcher dispatcher,
            ClusterSettings cluster,
            Tracer tracer
        ) {
            super(settings, network, recycler, threads, names, dispatcher, cluster, tracer);
        }

        @Override
        protected void doStart() {
            bindServer();
        }

        @Override
        protected HttpServerChannel bind(InetSocketAddress address) throws Exception {
            return new Listening(new ServerBootstrap().group(loops)
                .channel(NioServerSocketChannel.class)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel channel) {
                        Connection connection = new Connection(channel, recycler());
                        channel.pipeline()
                            .addLast(new HttpServerCodec())
                            .addLast(new HttpObjectAggregator((int) maxContentLength.getBytes()))
                            .addLast(new Handler(Edge.this, connection));
                        serverAcceptedChannel(connection);
                    }
                })
                .bind(address)
                .sync()
                .channel());
        }

        @Override
        protected void stopInternal() {
            loops.shutdownGracefully();
        }
    }

    private static final class Handler extends SimpleChannelInboundHandler<FullHttpRequest> {
        private final Edge edge;
        private final Connection connection;

        Handler(Edge edge, Connection connection) {
            this.edge = edge;
            this.connection = connection;
        }

        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
            edge.incomingRequest(new Request(request), connection);
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable error) {
            context.close();
        }
    }

    private static class Listening implements HttpServerChannel {
        final Channel channel;

        Listening(Channel channel) {
            this.channel = channel;
        }

        @Override
        public InetSocketAddress getLocalAddress() {
            return (InetSocketAddress) channel.localAddress();
        }

        @Override
        public void close() {
            channel.close();
        }

        @Override
        public void addCloseListener(ActionListener<Void> listener) {
            channel.closeFuture().addListener(closed -> listener.onResponse(null));
        }

        @Override
        public boolean isOpen() {
            return channel.isOpen();
        }
    }

    private static final class Connection extends Listening implements HttpChannel {
        private final Recycler<BytesRef> recycler;

        Connection(Channel channel, Recycler<BytesRef> recycler) {
            super(channel);
            this.recycler = recycler;
        }

        @Override
        public InetSocketAddress getRemoteAddress() {
            return (InetSocketAddress) channel.remoteAddress();
        }

        @Override
        public void sendResponse(HttpResponse response, ActionListener<Void> listener) {
            try {
                channel.writeAndFlush(((Response) response).encoded(channel, recycler)).addListener(sent -> {
                    if (sent.isSuccess()) {
                        listener.onResponse(null);
                    } else {
                        listener.onFailure(new IOException(sent.cause()));
                    }
                });
            } catch (IOException error) {
                channel.close();
                listener.onFailure(error);
            }
        }
    }

    private static final class Request implements HttpRequest {
        private final RestRequest.Method method;
        private final String uri;
        private final Map<String, List<String>> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        private final HttpBody body;

        Request(FullHttpRequest request) {
            method = RestRequest.Method.valueOf(request.method().name());
            uri = request.uri();
            for (Map.Entry<String, String> header : request.headers()) {
                headers.computeIfAbsent(header.getKey(), name -> new ArrayList<>()).add(header.getValue());
            }
            body = HttpBody.fromBytesReference(new BytesArray(ByteBufUtil.getBytes(request.content())));
        }

        @Override
        public RestRequest.Method method() {
            return method;
        }

        @Override
        public String uri() {
            return uri;
        }

        @Override
        public Map<String, List<String>> getHeaders() {
            return headers;
        }

        @Override
        public HttpBody body() {
            return body;
        }

        @Override
        public List<String> strictCookies() {
            return List.of();
        }

        @Override
        public HttpVersion protocolVersion() {
            return HttpVersion.HTTP_1_1;
        }

        @Override
        public HttpRequest removeHeader(String name) {
            headers.remove(name);
            return this;
        }

        @Override
        public HttpResponse createResponse(RestStatus status, BytesReference content) {
            return new Response(status, content, null);
        }

        @Override
        public HttpResponse createResponse(RestStatus status, ChunkedRestResponseBodyPart content) {
            return new Response(status, null, content);
        }

        @Override
        public Exception getInboundException() {
            return null;
        }

        @Override
        public void release() {}
    }

    private static final class Response implements HttpResponse {
        private static final int CHUNK = 1 << 15;
        private final RestStatus status;
        private final BytesReference whole;
        private final ChunkedRestResponseBodyPart parts;
        private final Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);

        Response(RestStatus status, BytesReference whole, ChunkedRestResponseBodyPart parts) {
            this.status = status;
            this.whole = whole;
            this.parts = parts;
        }

        @Override
        public void addHeader(String name, String value) {
            headers.put(name, value);
        }

        @Override
        public boolean containsHeader(String name) {
            return headers.containsKey(name);
        }

        FullHttpResponse encoded(Channel channel, Recycler<BytesRef> recycler) throws IOException {
            ByteBuf content = channel.alloc().buffer();
            if (whole != null) {
                append(content, whole);
            } else {
                while (!parts.isPartComplete()) {
                    try (var part = parts.encodeChunk(CHUNK, recycler)) {
                        append(content, part);
                    }
                }
            }
            FullHttpResponse response = new DefaultFullHttpResponse(
                io.netty.handler.codec.http.HttpVersion.HTTP_1_1,
                HttpResponseStatus.valueOf(status.getStatus()),
                content
            );
            headers.forEach(response.headers()::set);
            response.headers().remove("transfer-encoding"); // an answer in parts is sent as a whole
            response.headers().set("content-length", content.readableBytes());
            return response;
        }

        private static void append(ByteBuf content, BytesReference added) throws IOException {
            BytesRefIterator pieces = added.iterator();
            for (BytesRef piece = pieces.next(); piece != null; piece = pieces.next()) {
                content.writeBytes(piece.bytes, piece.offset, piece.length);
            }
        }
    }

    /** The network of a node without others. */
    private static final class Alone extends AbstractLifecycleComponent implements Transport {
        private final RequestHandlers requests = new RequestHandlers();
        private final ResponseHandlers responses = new ResponseHandlers();
        private final TransportAddress address = new TransportAddress(InetAddress.getLoopbackAddress(), 9300);

        @Override
        protected void doStart() {}

        @Override
        protected void doStop() {}

        @Override
        protected void doClose() {}

        @Override
        public void setMessageListener(TransportMessageListener listener) {}

        @Override
        public BoundTransportAddress boundAddress() {
            return new BoundTransportAddress(new TransportAddress[] { address }, address);
        }

        @Override
        public BoundTransportAddress boundRemoteIngressAddress() {
            return null;
        }

        @Override
        public Map<String, BoundTransportAddress> profileBoundAddresses() {
            return Map.of();
        }

        @Override
        public TransportAddress[] addressesFromString(String text) {
            return new TransportAddress[0];
        }

        @Override
        public List<String> getDefaultSeedAddresses() {
            return List.of();
        }

        @Override
        public void openConnection(DiscoveryNode node, ConnectionProfile profile, ActionListener<Connection> listener) {
            listener.onFailure(new IOException("there are no other nodes"));
        }

        @Override
        public TransportStats getStats() {
            return new TransportStats(0, 0, 0, 0, 0, 0, new long[0], new long[0], Map.of());
        }

        @Override
        public ResponseHandlers getResponseHandlers() {
            return responses;
        }

        @Override
        public RequestHandlers getRequestHandlers() {
            return requests;
        }
    }
}

/** One node of Elasticsearch in this process: `java Start HOME PORT`. HOME/plugins/library holds the classes above. */
final class Start {
    private Start() {}

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        LogConfigurator.configureESLogging();
        Settings settings = Settings.builder()
            .put("path.home", home)
            .put("node.name", "node")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", arguments[1])
            .put("http.type", "library")
            .put("transport.type", "library")
            .build();
        Environment environment = new Environment(settings, home.resolve("config"));
        PluginsLoader loader = PluginsLoader.createPluginsLoader(
            PluginsLoader.loadModulesBundles(environment.modulesDir()),
            PluginsLoader.loadPluginsBundles(environment.pluginsDir()),
            Map.of(),
            false
        );
        Node node = new Node(environment, loader);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }));
        node.start();
        new CountDownLatch(1).await();
    }
}
