//! Makes TLS sessions for the `postgres` crate.

use super::binding::channel_binding;
use super::error::TlsError;
use super::settings::TlsSettings;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use rustls::pki_types::ServerName;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

/// Connects to any host.
#[derive(Clone)]
pub struct Connector {
    settings: Arc<TlsSettings>,
}

impl Connector {
    pub fn new(settings: TlsSettings) -> Self {
        Connector { settings: Arc::new(settings) }
    }
}

/// Connects to one host.
pub struct HostConnector {
    settings: Arc<TlsSettings>,
    host: String,
}

impl<S> MakeTlsConnect<S> for Connector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Session<S>;
    type TlsConnect = HostConnector;
    type Error = TlsError;

    fn make_tls_connect(&mut self, host: &str) -> Result<HostConnector, TlsError> {
        Ok(HostConnector { settings: Arc::clone(&self.settings), host: host.to_owned() })
    }
}

impl<S> TlsConnect<S> for HostConnector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Session<S>;
    type Error = TlsError;
    type Future = Pin<Box<dyn Future<Output = Result<Session<S>, TlsError>> + Send>>;

    /// Called once the server has agreed to TLS.
    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let config = Arc::new(self.settings.load()?);
            let host = ServerName::try_from(self.host.as_str()).map(|host| host.to_owned());
            let host = host.map_err(|_| TlsError::HostName(self.host))?;
            Ok(Session(TlsConnector::from(config).connect(host, stream).await?))
        })
    }
}

/// A session, after the handshake.
pub struct Session<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> postgres::tls::TlsStream for Session<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, connection) = self.0.get_ref();
        let certificate = connection.peer_certificates().and_then(|chain| chain.first());
        certificate.map_or_else(ChannelBinding::none, channel_binding)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Session<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Session<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
